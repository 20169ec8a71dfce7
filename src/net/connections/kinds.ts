import { apiKey } from "./api-key.ts";
import { basic } from "./basic.ts";
import { bearer } from "./bearer.ts";
import { custom } from "./custom.ts";
import type { AppliedCredentials, ConnectionKind } from "./kind.ts";
import { oauth2 } from "./oauth2.ts";

/** All connection kinds. To add a kind, add its file and a line here. */
export const CONNECTION_KINDS = [apiKey, basic, bearer, oauth2, custom] as const;

/** A connection kind with the type of its settings erased. */
interface AnyConnectionKind extends Pick<ConnectionKind, "secretSettings" | "issuesTokens"> {
  readonly destinations: readonly string[];
  /** @param settings stored settings with decrypted secrets */
  readonly apply: (settings: unknown, accessToken: string | undefined) => AppliedCredentials;
}

/** Finds a connection kind. @throws Error for an unknown name, which the API never stores */
export function getConnectionKind(name: string): AnyConnectionKind {
  const kind = CONNECTION_KINDS.find((one) => one.kind === name);
  if (!kind) throw new Error(`unknown connection kind ${name}`);
  return {
    destinations: [],
    ...kind,
    // Parse stored settings again, so that settings added in later versions get their defaults.
    apply: (settings, accessToken) => kind.apply(kind.settings.parse(settings) as never, accessToken),
  };
}
