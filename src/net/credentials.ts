import type { OutboundRequest } from "./outbound.ts";

/** Thrown when a stored credential is no longer valid, so that a person must provide a new one. */
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

export interface AuthorizedRequest {
  readonly request: OutboundRequest;
  /**
   * Names of the headers (in lower case) and query parameters that contain a secret. They are left out of logs, dry runs and
   * quarantine.
   */
  readonly secretHeaders: readonly string[];
  readonly secretQuery: readonly string[];
  /** Generation of the token in the request. `undefined` if the credentials cannot be renewed. */
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
   * Renews the token after a response with status 401. Returns true if there is now a newer token than the rejected one, so that a
   * retry makes sense. Another worker may have renewed it.
   *
   * @throws NeedsReauthError if the issuer rejects the grant
   */
  readonly renew: (
    refused: Pick<AuthorizedRequest, "generation">,
    options: { readonly signal: AbortSignal },
  ) => Promise<boolean>;
}

/** The credentials are loaded whenever they are used, so changes to the connection apply immediately. */
export type CredentialsOf = (connectionId: string) => Credentials;
