import type { OutboundRequest } from "./outbound.ts";

/** Thrown when a stored credential is no longer valid. A person must then provide a new one. */
export class NeedsReauthError extends Error {
  override readonly name = "NeedsReauthError";
}

/**
 * Thrown when a request goes to an origin that the connection does not allow. A person must then change the channel or the
 * connection.
 */
export class OriginNotAllowedError extends Error {
  override readonly name = "OriginNotAllowedError";
}

/** A request with its credentials. */
export interface AuthorizedRequest {
  readonly request: OutboundRequest;
  /** Names of headers (in lower case) and query parameters that contain a secret. Logs, dry runs and quarantine omit them. */
  readonly secretHeaders: readonly string[];
  readonly secretQuery: readonly string[];
  /** Generation of the token in the request, or `undefined` if the credentials cannot be renewed. */
  readonly generation: number | undefined;
}

/** Stored credentials of a connection. Channels use them to call other servers. */
export interface Credentials {
  /**
   * Returns the request with credentials added. Renews the token first if it expires soon; only one worker at a time renews a
   * token.
   *
   * @throws NeedsReauthError
   * @throws OriginNotAllowedError if the URL is outside the connection's allowed origins
   * @throws UnavailableError if the credentials cannot be read
   * @throws OutboundError if a request to the token's issuer fails
   */
  readonly authorize: (
    request: OutboundRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<AuthorizedRequest>;
  /**
   * Renews the token after a response with status 401. Returns true if there is a newer token than the rejected one, so that a
   * retry makes sense. This worker or another one may have renewed it.
   *
   * @throws NeedsReauthError if the issuer rejects the grant
   */
  readonly renew: (
    refused: Pick<AuthorizedRequest, "generation">,
    options: { readonly signal: AbortSignal },
  ) => Promise<boolean>;
}

/** Returns the credentials of a connection. They are loaded each time they are used, so changes apply immediately. */
export type CredentialsOf = (connectionId: string) => Credentials;
