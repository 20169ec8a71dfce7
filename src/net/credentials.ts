import type { OutboundRequest } from "./outbound.ts";

/** Thrown when a stored credential is no longer valid and a person must provide a new one. */
export class NeedsReauthError extends Error {
  override readonly name = "NeedsReauthError";
}

/** Thrown when a request goes to an origin that the connection does not allow. The channel or the connection must be changed. */
export class OriginNotAllowedError extends Error {
  override readonly name = "OriginNotAllowedError";
}

/** A request that contains credentials. */
export interface AuthorizedRequest {
  readonly request: OutboundRequest;
  /** Headers (names in lower case) and query parameters that contain a secret. Logs, dry runs and quarantine omit them. */
  readonly secretHeaders: readonly string[];
  readonly secretQuery: readonly string[];
  /** Generation of the token in the request; `undefined` if the credentials cannot be renewed. */
  readonly generation: number | undefined;
}

/** Stored credentials of a connection, for calls on behalf of a channel. */
export interface Credentials {
  /**
   * Returns the request with the credentials. A token that expires soon is renewed first, by one worker at a time.
   *
   * @throws NeedsReauthError; UnavailableError if the credentials cannot be read; OutboundError of the token's issuer
   * @throws OriginNotAllowedError if the URL is outside the connection's allowed origins
   */
  readonly authorize: (
    request: OutboundRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<AuthorizedRequest>;
  /**
   * Called after a 401. Returns true if there is a newer token than the rejected one, renewed now or by another worker, so that a retry
   * makes sense.
   *
   * @throws NeedsReauthError if the issuer rejects the grant
   */
  readonly renew: (
    refused: Pick<AuthorizedRequest, "generation">,
    options: { readonly signal: AbortSignal },
  ) => Promise<boolean>;
}

/** Returns the credentials of a connection. They are loaded on each use, so changes apply immediately. */
export type CredentialsOf = (connectionId: string) => Credentials;
