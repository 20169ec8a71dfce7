import { apiKey } from "./api-key.ts";
import { basic } from "./basic.ts";
import { bearer } from "./bearer.ts";
import { custom } from "./custom.ts";
import type { AppliedCredentials, ConnectionKind } from "./kind.ts";
import { oauth2 } from "./oauth2.ts";

/** All kinds of connections. To add a kind, add its file to this folder and a line here. */
export const CONNECTION_KINDS = [apiKey, basic, bearer, oauth2, custom] as const;

/** A kind of connection without its config type, so that all kinds fit in one list. */
interface AnyConnectionKind extends Pick<ConnectionKind, "secretFields" | "issuesTokens"> {
  readonly destinations: readonly string[];
  readonly apply: (config: unknown, accessToken: string | undefined) => AppliedCredentials;
}

/**
 * Returns the kind of connection with a name.
 *
 * @throws Error if the name is unknown; the API never stores such a name
 */
export function getConnectionKind(name: string): AnyConnectionKind {
  const kind = CONNECTION_KINDS.find((one) => one.kind === name);
  if (!kind) throw new Error(`unknown connection kind ${name}`);
  return {
    destinations: [],
    ...kind,
    // Parse the stored config again, so that fields added in later versions get their defaults.
    apply: (config, accessToken) => kind.apply(kind.configSchema.parse(config) as never, accessToken),
  };
}
