import type { z } from "zod";
import { appendToQuery, removeFromQuery } from "../../lib/url-query.ts";
import type { OutboundRequest } from "../outbound.ts";

/** Headers, query parameters and the start of the path that authenticate a request. All of their values are secret. */
export interface AppliedCredentials {
  /** Header names are in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Start of the URL's path, which precedes the path of the request. */
  readonly path?: string;
}

/**
 * A way to authenticate to other servers. To add one, add a file to this folder and a line to `kinds.ts`.
 *
 * `configSchema` is the schema of a connection's `config`, and must be a strict object. `secretFields` lists the write-only
 * fields, which are encrypted in the database and never returned.
 */
export interface ConnectionKind<S extends z.ZodObject = z.ZodObject, K extends string = string> {
  readonly kind: K;
  readonly configSchema: S;
  readonly secretFields: readonly (keyof z.output<S> & string)[];
  /**
   * Names of config fields with URLs to which secrets are sent, in addition to the allowed origins. A user who changes such a URL
   * must enter the secrets again.
   */
  readonly destinations?: readonly (keyof z.output<S> & string)[];
  /** Set if this kind of connection obtains access tokens from an OAuth issuer. */
  readonly issuesTokens?: true;
  /**
   * Returns the headers, query parameters and start of the path to add to a request.
   *
   * @param accessToken current access token; set for kinds with `issuesTokens`
   */
  readonly apply: (config: z.output<S>, accessToken: string | undefined) => AppliedCredentials;
}

/** Adds credentials to a request. Existing headers and query parameters of the same name are replaced. */
export function withCredentials(
  request: OutboundRequest,
  { headers = {}, query = {}, path = "" }: AppliedCredentials,
): OutboundRequest {
  const url = new URL(request.url);
  if (path !== "") url.pathname = path + url.pathname;
  removeFromQuery(url, Object.keys(query));
  appendToQuery(url, Object.entries(query));
  return { ...request, url: url.href, headers: { ...request.headers, ...headers } };
}
