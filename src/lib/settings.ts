import { resolve } from "node:path";
import { LOG_LEVELS, type LogLevel } from "../log.ts";
import { parseMasterKey } from "./master-key.ts";
import { err, ok } from "./result.ts";
import type { SettingInfo } from "./setting-help.ts";
import {
  bearerToken,
  flag,
  issuer,
  listOf,
  matching,
  network,
  nonEmptyText,
  noneOr,
  oneOf,
  portNumber,
  type SettingType,
  url,
  wholeNumber,
} from "./setting-types.ts";

export const ROLES = ["api", "hooks", "sources", "delivery"] as const;
export type Role = (typeof ROLES)[number];

/** From the weakest promise to the strongest. */
export const DURABILITIES = ["none", "process", "fsync", "replica"] as const;
export type Durability = (typeof DURABILITIES)[number];

export interface Config {
  /** 0: any free one. */
  readonly port: number;
  readonly host: string;
  /** Absolute path. */
  readonly dataDir: string;
  readonly roles: readonly Role[];
  /** Undefined: see `publicUrls`. */
  readonly baseUrl: string | undefined;
  readonly hooksUrl: string | undefined;
  readonly apiKey: string | undefined;
  /** As the issuer spells it; undefined: tokens of no other issuer are accepted. */
  readonly oidcIssuer: string | undefined;
  /** Set where `oidcIssuer` is. */
  readonly oidcAudience: string | undefined;
  /** What each API key may ask of the management API. */
  readonly apiRequestsPerMinute: number;
  /** What the hooks of each organization take, and of each channel that says nothing else. */
  readonly hookRequestsPerSecond: number;
  /** Polls under way in this process at once. */
  readonly pollConcurrency: number;
  /** Polls under way at once to one scheme, host and port, over all processes. */
  readonly pollsPerOrigin: number;
  /** The same of one organization. */
  readonly pollsPerOrganization: number;
  /** The three carriers that SIP trunks and phone numbers can be of. */
  readonly sipProviders: readonly string[];
  /** 32 bytes; undefined: the one in the data directory. */
  readonly masterKey: Buffer | undefined;
  /** 32 bytes; undefined: no other is to come, or one is made in the data directory when it is to. */
  readonly newMasterKey: Buffer | undefined;
  /** Networks (CIDR) of proxies whose forwarding headers are believed. */
  readonly trustProxy: readonly string[];
  /** Networks (CIDR) that outbound calls may reach though they are not public. */
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

export interface Setting<T> extends SettingInfo {
  /** Reads the text that is set, or else `defaultText`. */
  readonly type: SettingType<T>;
}

const MIN_TOKEN_LENGTH = 16;

const masterKey: SettingType<Buffer> = (text) => {
  const key = parseMasterKey(text);
  return key
    ? ok(key)
    : err("must be 32 bytes as base64 or as 64 hexadecimal digits (`openssl rand -base64 32`)");
};

const SIP_PROVIDERS = 3;

const sipProviders: SettingType<readonly string[]> = (text) => {
  const names = listOf(matching(/^[a-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 _ . -"))(text);
  return !names.ok || names.value.length === SIP_PROVIDERS
    ? names
    : err(`must be ${SIP_PROVIDERS} different names`);
};

/** The one list of settings: parsing, `--help`, the table of the documentation and the settings file are made from it. */
export const SETTINGS: { readonly [K in keyof Config]: Setting<Config[K]> } = {
  port: {
    name: "INLET_PORT",
    type: portNumber,
    defaultText: "8080",
    description: "Port to listen on; 0 takes any free one and prints it.",
    secret: false,
  },
  host: {
    name: "INLET_HOST",
    type: nonEmptyText,
    defaultText: "127.0.0.1",
    description: "Address to listen on; the container image sets 0.0.0.0.",
    secret: false,
  },
  dataDir: {
    name: "INLET_DATA_DIR",
    type: (text) => ok(resolve(text)),
    defaultText: "./data",
    description: "Folder of Inlet's own PostgreSQL, Redis and master key; one gateway at a time owns it.",
    secret: false,
  },
  roles: {
    name: "INLET_ROLES",
    type: listOf(oneOf(ROLES)),
    defaultText: ROLES.join(","),
    description:
      "What this process does: any of api, hooks, sources, delivery. `hooks` alone serves hooks and health only.",
    secret: false,
  },
  baseUrl: {
    name: "INLET_BASE_URL",
    type: url(["https:", "http:"]),
    unsetMeans: "from host and port",
    description:
      "Public address of the management API, for what is printed and linked; /v1 is added if it is missing.",
    secret: false,
  },
  hooksUrl: {
    name: "INLET_HOOKS_URL",
    type: url(["https:", "http:"]),
    unsetMeans: "the base URL without /v1",
    description: "Public address in front of /hooks/{channelId}.",
    secret: false,
  },
  apiKey: {
    name: "INLET_API_KEY",
    type: bearerToken(MIN_TOKEN_LENGTH),
    description: `API key with all permissions in the default organization, for automation; at least ${MIN_TOKEN_LENGTH} characters. The database keeps it, hashed: it stays valid when it is set no longer.`,
    secret: true,
  },
  oidcIssuer: {
    name: "INLET_OIDC_ISSUER",
    type: issuer,
    description:
      "OpenID Connect issuer whose tokens are accepted, exactly as it names itself: its subject must be the identifier of an Identity with this provider.",
    secret: false,
  },
  oidcAudience: {
    name: "INLET_OIDC_AUDIENCE",
    type: nonEmptyText,
    description: "Audience that those tokens must name. Required with INLET_OIDC_ISSUER.",
    secret: false,
  },
  apiRequestsPerMinute: {
    name: "INLET_API_REQUESTS_PER_MINUTE",
    type: wholeNumber(1, 1_000_000_000),
    defaultText: "600",
    description: "Requests to the management API that each API key has in a minute, over all gateways.",
    secret: false,
  },
  hookRequestsPerSecond: {
    name: "INLET_HOOK_REQUESTS_PER_SECOND",
    type: wholeNumber(1, 1_000_000_000),
    defaultText: "1000",
    description:
      "Deliveries to the hooks of one organization that each gateway takes in a second; a channel may set less for itself.",
    secret: false,
  },
  pollConcurrency: {
    name: "INLET_POLL_CONCURRENCY",
    type: wholeNumber(1, 1_000),
    defaultText: "50",
    description: "Polls that a process with the role `sources` has under way at once.",
    secret: false,
  },
  pollsPerOrigin: {
    name: "INLET_POLLS_PER_ORIGIN",
    type: wholeNumber(1, 10_000),
    defaultText: "10",
    description:
      "Polls of one server (scheme, host and port) that are under way at once, over all gateways; others wait in line.",
    secret: false,
  },
  pollsPerOrganization: {
    name: "INLET_POLLS_PER_ORGANIZATION",
    type: wholeNumber(1, 10_000),
    defaultText: "50",
    description:
      "Polls of one organization that are under way at once, over all gateways; others wait in line.",
    secret: false,
  },
  sipProviders: {
    name: "INLET_SIP_PROVIDERS",
    type: sipProviders,
    defaultText: "sip_provider_1,sip_provider_2,sip_provider_3",
    description:
      "Names of the three telephony carriers that SIP trunks and phone numbers can be of, in lower case, separated by commas.",
    secret: false,
  },
  masterKey: {
    name: "INLET_MASTER_KEY",
    type: masterKey,
    unsetMeans: "made in the data directory",
    description: "Key that seals stored secrets: 32 bytes, base64 or hex. Required with DATABASE_URL.",
    secret: true,
  },
  newMasterKey: {
    name: "INLET_NEW_MASTER_KEY",
    type: masterKey,
    unsetMeans: "made in the data directory",
    description:
      "Key that --rotate-master-key puts in the place of INLET_MASTER_KEY. Gateways that have both set go on through the change; others must be restarted after it.",
    secret: true,
  },
  trustProxy: {
    name: "INLET_TRUST_PROXY",
    type: noneOr(listOf(network)),
    defaultText: "none",
    description:
      "Networks of proxies whose X-Forwarded-For is believed, as a comma-separated list: rate limits and log lines go by the client's address.",
    secret: false,
  },
  allowNetworks: {
    name: "INLET_ALLOW_NETWORKS",
    type: noneOr(listOf(network)),
    defaultText: "none",
    description:
      "Networks that outbound calls (sources, OAuth) may reach though they are not public, as a comma-separated list.",
    secret: false,
  },
  logLevel: {
    name: "INLET_LOG_LEVEL",
    type: oneOf(LOG_LEVELS),
    defaultText: "info",
    description: `Least level that is logged: ${LOG_LEVELS.join(", ")}.`,
    secret: false,
  },
  durability: {
    name: "INLET_DURABILITY",
    type: oneOf(DURABILITIES),
    defaultText: "none",
    description:
      "What an answer of 200 must mean, checked at start: none, process (append-only file), fsync, replica (fsync and one replica).",
    secret: false,
  },
  durabilityAsserted: {
    name: "INLET_DURABILITY_ASSERTED",
    type: flag,
    defaultText: "0",
    description: "1 takes your word for it where Redis does not let its settings be read.",
    secret: false,
  },
  metricsToken: {
    name: "INLET_METRICS_TOKEN",
    type: bearerToken(MIN_TOKEN_LENGTH),
    description: `Bearer token that opens /metrics to callers other than loopback; at least ${MIN_TOKEN_LENGTH} characters.`,
    secret: true,
  },
  databaseUrl: {
    name: "DATABASE_URL",
    type: url(["postgresql:", "postgres:"], true),
    unsetMeans: "its own PostgreSQL",
    description: "PostgreSQL to use.",
    secret: true,
  },
  redisUrls: {
    name: "REDIS_URL",
    type: noneOr(listOf(url(["redis:", "rediss:", "unix:"], true))),
    defaultText: "none",
    unsetMeans: "its own redis-server",
    description: "Redis to use; a comma-separated list names nodes of one Cluster.",
    secret: true,
  },
};

export const SETTING_LIST: readonly Setting<unknown>[] = Object.values(SETTINGS);
