import { isDeepStrictEqual } from "node:util";
import type { ConnectionRow, ConnectionState } from "../../../data/tables.ts";
import type { Finding } from "../../../lib/errors.ts";
import { getConnectionKind } from "../../../net/connections/kinds.ts";
import { grantOf, oauth2 } from "../../../net/connections/oauth2.ts";
import type { ConnectionInput, ConnectionPatch } from "./schema.ts";

type Settings = Readonly<Record<string, unknown>>;

/** The settings as they are stored: the secret ones apart, none that is undefined. */
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
 * The secrets that a patch does not give anew though it sends them to where they were not meant for so far: another origin, or
 * another issuer. A caller that gives them knows them already.
 */
export function findSecretsWanted(
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
      message: "must be given again where credentials may be sent to other places",
    }));
}

/** A secret that is a record of texts counts by each of them. */
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

/** The effect of new settings on tokens and state. */
export interface GrantChange {
  /** The tokens of before are of no use. */
  readonly forgets: boolean;
  readonly state: ConnectionState;
}

/** @param before state and settings, secrets opened; undefined for a new connection */
export function grantChange(
  after: Pick<ConnectionInput, "kind" | "config" | "allowedOrigins">,
  before?: {
    readonly state: ConnectionState;
    readonly settings: Settings;
    readonly allowedOrigins: readonly string[];
  },
): GrantChange {
  if (after.kind !== oauth2.kind) return { forgets: false, state: "ok" };
  const settings = oauth2.settings.parse(after.config);
  const ungranted = settings.grant === "authorizationCode" ? "needsReauth" : "ok";
  if (!before) return { forgets: false, state: ungranted };
  const were = oauth2.settings.parse(before.settings);
  // A token that a person's authorization brought cannot be given again: who widens its reach authorizes again.
  const widens = after.allowedOrigins.some((origin) => !before.allowedOrigins.includes(origin));
  if (widens || !isDeepStrictEqual(grantOf(settings), grantOf(were))) {
    return { forgets: true, state: ungranted };
  }
  // The change may mend what the issuer refused.
  return { forgets: false, state: before.state === "error" ? "ok" : before.state };
}
