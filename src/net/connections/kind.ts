import type { z } from "zod";
import type { OutboundRequest } from "../outbound.ts";

/** Headers and query parameters that a connection adds to a request. All values are secret. */
export interface AppliedCredentials {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/**
 * A way to authenticate to other servers: one file in this folder and one line in `kinds.ts`.
 *
 * `settings` is the schema of a connection's `config`, a strict object. `secretSettings` lists the write-only settings, which are
 * stored encrypted and never returned.
 */
export interface ConnectionKind<S extends z.ZodObject = z.ZodObject, K extends string = string> {
  readonly kind: K;
  readonly settings: S;
  readonly secretSettings: readonly (keyof z.output<S> & string)[];
  /** Settings with URLs that receive secrets in addition to the allowed origins. Changing them requires entering the secrets again. */
  readonly destinations?: readonly (keyof z.output<S> & string)[];
  /** Whether the kind obtains access tokens from an issuer. */
  readonly issuesTokens?: true;
  /** @param accessToken the current access token, for kinds with `issuesTokens` */
  readonly apply: (settings: z.output<S>, accessToken: string | undefined) => AppliedCredentials;
}

/** Adds credentials to a request. They override headers and query parameters of the same name. */
export function withCredentials(
  request: OutboundRequest,
  { headers = {}, query = {} }: AppliedCredentials,
): OutboundRequest {
  const url = new URL(request.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { ...request, url: url.href, headers: { ...request.headers, ...headers } };
}
