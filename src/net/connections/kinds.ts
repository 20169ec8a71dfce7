import { apiKey } from "./api-key.ts";
import { basic } from "./basic.ts";
import { bearer } from "./bearer.ts";
import { custom } from "./custom.ts";
import type { AppliedCredentials, ConnectionKind } from "./kind.ts";
import { oauth2 } from "./oauth2.ts";

/** All connection kinds; a new one is its file and its line here. */
export const CONNECTION_KINDS = [apiKey, basic, bearer, oauth2, custom] as const;

/** The same for all kinds. */
interface AnyConnectionKind extends Pick<ConnectionKind, "secretSettings" | "issuesTokens"> {
  readonly destinations: readonly string[];
  /** @param settings as they are stored, secrets opened */
  readonly apply: (settings: unknown, accessToken: string | undefined) => AppliedCredentials;
}

/** @throws Error when there is none: what is stored was checked when it was written. */
export function getConnectionKind(name: string): AnyConnectionKind {
  const kind = CONNECTION_KINDS.find((one) => one.kind === name);
  if (!kind) throw new Error(`there is no connection kind ${name}`);
  return {
    destinations: [],
    ...kind,
    // Again through the schema: a setting that is younger than the row gets its default.
    apply: (settings, accessToken) => kind.apply(kind.settings.parse(settings) as never, accessToken),
  };
}
