import type { z } from "zod";
import type { OutboundRequest } from "../outbound.ts";

/** Added to a request by a kind. All of it is secret. */
export interface AppliedCredentials {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/**
 * One way to authenticate to other servers: a file in this folder and a line in `kinds.ts`.
 *
 * `settings` is the whole of a connection's `config`, a strict object. `secretSettings` names those of its settings that are
 * write-only: they are sealed, and never answered.
 */
export interface ConnectionKind<S extends z.ZodObject = z.ZodObject, K extends string = string> {
  readonly kind: K;
  readonly settings: S;
  readonly secretSettings: readonly (keyof z.output<S> & string)[];
  /** Settings that say where secrets are sent besides the allowed origins: who changes them gives the secrets again. */
  readonly destinations?: readonly (keyof z.output<S> & string)[];
  /** True where it takes an access token to apply it. */
  readonly issuesTokens?: true;
  /** @param accessToken where tokens are issued for the kind: the one to use */
  readonly apply: (settings: z.output<S>, accessToken: string | undefined) => AppliedCredentials;
}

/** The request with the credentials in it; they win over what it says itself. */
export function withCredentials(
  request: OutboundRequest,
  { headers = {}, query = {} }: AppliedCredentials,
): OutboundRequest {
  const url = new URL(request.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { ...request, url: url.href, headers: { ...request.headers, ...headers } };
}
