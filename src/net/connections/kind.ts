import type { z } from "zod";
import type { OutboundRequest } from "../outbound.ts";

/** Headers and query parameters that a connection adds to a request. All of their values are secret. */
export interface AppliedCredentials {
  /** Header names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
}

/**
 * A way to authenticate to other servers. To add one, add a file to this folder and a line to `kinds.ts`.
 *
 * `settings` is the schema of a connection's `config`, and must be a strict object. `secretSettings` lists the write-only
 * settings, which are stored encrypted and never returned.
 */
export interface ConnectionKind<S extends z.ZodObject = z.ZodObject, K extends string = string> {
  readonly kind: K;
  readonly settings: S;
  readonly secretSettings: readonly (keyof z.output<S> & string)[];
  /**
   * Names of settings that contain URLs. Secrets are sent to these URLs in addition to the allowed origins, so a user who
   * changes them must enter the secrets again.
   */
  readonly destinations?: readonly (keyof z.output<S> & string)[];
  /** Whether this kind of connection obtains access tokens from an issuer. */
  readonly issuesTokens?: true;
  /**
   * Returns the headers and query parameters to add. @param accessToken the current access token, for kinds with `issuesTokens`
   */
  readonly apply: (settings: z.output<S>, accessToken: string | undefined) => AppliedCredentials;
}

/** Adds credentials to a request. They replace existing headers and query parameters with the same names. */
export function withCredentials(
  request: OutboundRequest,
  { headers = {}, query = {} }: AppliedCredentials,
): OutboundRequest {
  const url = new URL(request.url);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return { ...request, url: url.href, headers: { ...request.headers, ...headers } };
}
