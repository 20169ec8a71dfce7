import { isDeepStrictEqual } from "node:util";
import type { ConnectionState } from "../../../data/connections/connection-tables.ts";
import type { ConnectionRow } from "../../../data/tables.ts";
import type { Finding } from "../../../lib/errors.ts";
import { formatPath } from "../../../lib/findings.ts";
import { listTexts } from "../../../lib/json/list-texts.ts";
import { getConnectionKind } from "../../../net/connections/kinds.ts";
import { OAUTH_PROVIDERS } from "../../../net/connections/oauth-providers.ts";
import { grantOf, oauth2, parseOAuth2Config } from "../../../net/connections/oauth2.ts";
import type { ConnectionInput, ConnectionPatch } from "./schema.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Separates secret settings from the others, because secrets are stored encrypted. Omits undefined settings. */
export function splitSecrets({ kind, config }: Pick<ConnectionInput, "kind" | "config">): {
  readonly config: Fields;
  readonly secrets: Fields;
} {
  const { secretFields } = getConnectionKind(kind);
  const entries = Object.entries(config).filter(([, value]) => value !== undefined);
  const isSecret = ([name]: [string, unknown]): boolean => secretFields.includes(name);
  return {
    config: Object.fromEntries(entries.filter((entry) => !isSecret(entry))),
    secrets: Object.fromEntries(entries.filter(isSecret)),
  };
}

/**
 * Finds the secrets that the caller must send again. A change that allows credentials to reach another server requires
 * all secrets. Otherwise a caller could redirect stored secrets.
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
  const given = new Set(listTexts(patch.config).map(({ path }) => formatPath(path)));
  return listTexts(splitSecrets(after).secrets)
    .map(({ path }) => formatPath(path))
    .filter((path) => !given.has(path))
    .map((path) => ({
      path: `config.${path}`,
      message: "must be sent again, because the change allows credentials to be sent to other servers",
    }));
}

/** Returns whether a patch names another provider, whose origins replace the default origins of the stored provider. */
export function hasReplacedOrigins(
  { config, allowedOrigins }: Pick<ConnectionRow, "config" | "allowedOrigins">,
  patch: ConnectionPatch,
): boolean {
  const { provider } = config;
  const isOther = patch.config?.provider !== undefined && patch.config.provider !== provider;
  return isOther && isDeepStrictEqual(allowedOrigins, OAUTH_PROVIDERS.get(String(provider))?.allowedOrigins);
}

export interface GrantChange {
  /** Whether the stored tokens do not match the new settings and must be deleted. */
  readonly discardsTokens: boolean;
  readonly state: ConnectionState;
}

/**
 * Determines whether a change of settings invalidates the tokens.
 * @param before the stored connection with decrypted secrets; `undefined` for a new connection
 */
export function computeGrantChange(
  after: Pick<ConnectionInput, "kind" | "config" | "allowedOrigins">,
  before?: {
    readonly state: ConnectionState;
    readonly config: Fields;
    readonly allowedOrigins: readonly string[];
  },
): GrantChange {
  if (after.kind !== oauth2.kind) return { discardsTokens: false, state: "ok" };
  const config = parseOAuth2Config(after.config);
  const ungranted = config.grant === "authorizationCode" ? "needsReauth" : "ok";
  if (!before) return { discardsTokens: false, state: ungranted };
  const configBefore = parseOAuth2Config(before.config);
  // Unlike secrets, tokens cannot be sent again by the caller. A new origin therefore requires a new authorization.
  const widens = after.allowedOrigins.some((origin) => !before.allowedOrigins.includes(origin));
  if (widens || !isDeepStrictEqual(grantOf(config), grantOf(configBefore))) {
    return { discardsTokens: true, state: ungranted };
  }
  // The changed settings may have fixed the error that the issuer reported, so the next request tries the connection again.
  return { discardsTokens: false, state: before.state === "error" ? "ok" : before.state };
}
