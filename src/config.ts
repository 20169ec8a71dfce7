import type { Finding } from "./lib/errors.ts";
import type { Result } from "./lib/result.ts";
import type { LogLevel } from "./log.ts";

export type Role = "api" | "hooks" | "sources" | "delivery";
export type Durability = "none" | "process" | "fsync" | "replica";

export interface Config {
  readonly port: number;
  readonly host: string;
  readonly dataDir: string;
  readonly roles: readonly Role[];
  readonly baseUrl: string | undefined;
  readonly hooksUrl: string | undefined;
  readonly apiKey: string | undefined;
  readonly masterKey: Buffer | undefined;
  /** CIDRs of proxies whose forwarding headers are believed; empty: nobody's. */
  readonly trustProxy: readonly string[];
  readonly allowNetworks: readonly string[];
  readonly logLevel: LogLevel;
  readonly durability: Durability;
  readonly durabilityAsserted: boolean;
  readonly metricsToken: string | undefined;
  /** Undefined: Inlet runs its own PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** Empty: Inlet runs its own redis-server. */
  readonly redisUrls: readonly string[];
}

export type Command =
  | { readonly kind: "start"; readonly config: Config }
  | { readonly kind: "help" }
  | { readonly kind: "version" };

/** `argv` without node and script. Every wrong setting is one finding whose `path` is its name. */
export declare function parseConfig(
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): Result<Command, readonly Finding[]>;

/** Where clients find this gateway, once the listener's real port is known. */
export declare function publicUrls(
  config: Config,
  port: number,
): { readonly baseUrl: string; readonly hooksUrl: string };

export declare function renderHelp(): string;
export declare function renderSettingsTable(): string;
