import { isDeepStrictEqual } from "node:util";
import type { ConnectionRow, ConnectionState } from "../../../data/tables.ts";
import type { Finding } from "../../../lib/errors.ts";
import { getConnectionKind } from "../../../net/connections/kinds.ts";
import { grantOf, oauth2 } from "../../../net/connections/oauth2.ts";
import type { ConnectionInput, ConnectionPatch } from "./schema.ts";

type Settings = Readonly<Record<string, unknown>>;

/** Separates the secret settings from the others, because they are stored encrypted. Omits undefined settings. */
export function splitSecrets({ kind, config }: Pick<ConnectionInput, "kind" | "config">): {
  readonly config: Settings;
  readonly secrets: Settings;
} {
  const { secretSettings } = getConnectionKind(kind);
  const entries = Object.entries(config).filter(([, value]) => value !== undefined);
  const isSecret = ([name]: [string, unknown]): boolean => secretSettings.includes(name);
  return {
    config: Object.fromEntries(entries.filter((entry) => !isSecret(entry))),
    secrets: Object.fromEntries(entries.filter(isSecret)),
  };
}

/**
 * Returns a finding for each stored secret that the patch must repeat but omits. A patch that adds an allowed origin or changes the issuer
 * must repeat all secrets. Otherwise a caller could send stored secrets to a server of their choice.
 */
export function findMissingSecrets(
  before: ConnectionRow,
  after: ConnectionInput,
  patch: ConnectionPatch,
): readonly Finding[] {
  const { destinations } = getConnectionKind(before.kind);
  const widens =
    after.allowedOrigins.some((origin) => !before.allowedOrigins.includes(origin)) ||
    destinations.some((name) => after.config[name] !== before.config[name]);
  if (!widens) return [];
  return secretPaths(splitSecrets(after).secrets)
    .filter((path) => !isGiven(patch.config ?? {}, path))
    .map((path) => ({
      path: `config.${path.join(".")}`,
      message: "must be sent again, because the change allows credentials to be sent to other servers",
    }));
}

/** Returns the path of each secret. A secret that is a record has one path per member. */
function secretPaths(secrets: Settings): readonly (readonly string[])[] {
  return Object.entries(secrets).flatMap(([name, value]) =>
    typeof value === "object" && value !== null ? Object.keys(value).map((field) => [name, field]) : [[name]],
  );
}

function isGiven(patch: Settings, path: readonly string[]): boolean {
  let value: unknown = patch;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return false;
    value = (value as Settings)[name];
  }
  return typeof value === "string";
}

export interface GrantChange {
  /** Whether the stored tokens no longer fit the settings and must be deleted. */
  readonly discardsTokens: boolean;
  readonly state: ConnectionState;
}

/** @param before the stored connection with decrypted secrets; `undefined` for a new connection */
export function computeGrantChange(
  after: Pick<ConnectionInput, "kind" | "config" | "allowedOrigins">,
  before?: {
    readonly state: ConnectionState;
    readonly settings: Settings;
    readonly allowedOrigins: readonly string[];
  },
): GrantChange {
  if (after.kind !== oauth2.kind) return { discardsTokens: false, state: "ok" };
  const settings = oauth2.settings.parse(after.config);
  const ungranted = settings.grant === "authorizationCode" ? "needsReauth" : "ok";
  if (!before) return { discardsTokens: false, state: ungranted };
  const settingsBefore = oauth2.settings.parse(before.settings);
  // Unlike secrets, tokens cannot be sent again by the caller. A new origin therefore requires a new authorization.
  const widens = after.allowedOrigins.some((origin) => !before.allowedOrigins.includes(origin));
  if (widens || !isDeepStrictEqual(grantOf(settings), grantOf(settingsBefore))) {
    return { discardsTokens: true, state: ungranted };
  }
  // The change may have fixed the error that the issuer reported, so the connection is tried again.
  return { discardsTokens: false, state: before.state === "error" ? "ok" : before.state };
}
