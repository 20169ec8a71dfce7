import type { OutboundRequest } from "./outbound.ts";

/** Thrown when a stored credential is no longer valid. A person must then provide a new one. */
export class NeedsReauthError extends Error {
  override readonly name = "NeedsReauthError";
}

/**
 * Thrown when a request goes to an origin that its connection does not allow. A person must then change the channel or the
 * connection.
 */
export class OriginNotAllowedError extends Error {
  override readonly name = "OriginNotAllowedError";
}

export interface AuthorizedRequest {
  readonly request: OutboundRequest;
  /** Names of the headers (lower case) and query parameters with secret values. Logs, dry runs and quarantine omit them. */
  readonly secretHeaders: readonly string[];
  readonly secretQuery: readonly string[];
  /** Start of the URL's path that is secret, such as `/bot123:abc`. `undefined` if the path contains no secret. */
  readonly secretPath?: string | undefined;
  /** Number of the token in the request, which grows with each renewal. `undefined` if the credentials cannot be renewed. */
  readonly generation: number | undefined;
}

export interface Credentials {
  /**
   * Returns the request with credentials. Renews the token first if it expires soon; for each connection, only one worker renews
   * at a time.
   *
   * @throws NeedsReauthError
   * @throws OriginNotAllowedError if the URL is outside the connection's allowed origins
   * @throws UnavailableError if the credentials cannot be read
   * @throws OutboundError if a request to the issuer of the token fails
   */
  readonly authorize: (
    request: OutboundRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<AuthorizedRequest>;
  /**
   * Renews the token after a response with status 401. Returns true if there is a newer token than the rejected one, so that a
   * retry makes sense.
   *
   * @throws NeedsReauthError if the issuer rejects the grant
   */
  readonly renew: (
    refused: Pick<AuthorizedRequest, "generation">,
    options: { readonly signal: AbortSignal },
  ) => Promise<boolean>;
}

/** Returns the credentials of a connection. They are loaded at each use, so that changes to the connection apply immediately. */
export type CredentialsOf = (connectionId: string) => Credentials;
