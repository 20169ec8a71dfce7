import type { OutboundRequest } from "./outbound.ts";

/** A stored credential can no longer be used: a person must give a new one. */
export class NeedsReauthError extends Error {
  override readonly name = "NeedsReauthError";
}

/** The credentials are not meant for where the request goes: its channel must be changed, or the connection. */
export class OriginNotAllowedError extends Error {
  override readonly name = "OriginNotAllowedError";
}

/** A request with credentials in it. */
export interface AuthorizedRequest {
  readonly request: OutboundRequest;
  /** Header names (lower case) and query names that now hold a secret: they are in no log, dry run, or quarantine. */
  readonly secretHeaders: readonly string[];
  readonly secretQuery: readonly string[];
  /** Of the token that was used; undefined where it cannot be renewed. */
  readonly generation: number | undefined;
}

/** The stored credentials of a connection, for calls on behalf of a channel. */
export interface Credentials {
  /**
   * The request with the credentials in it. A token that ends soon is renewed first, by one worker at a time.
   *
   * @throws NeedsReauthError; UnavailableError when they cannot be read now; OutboundError of the token's issuer.
   * @throws OriginNotAllowedError when the url is outside the connection's allowed origins.
   */
  readonly authorize: (
    request: OutboundRequest,
    options: { readonly signal: AbortSignal },
  ) => Promise<AuthorizedRequest>;
  /**
   * After a 401: true where there is a newer token than the one that was refused, renewed now or meanwhile by another worker,
   * so that one more try makes sense.
   *
   * @throws NeedsReauthError where the grant is dead.
   */
  readonly renew: (
    refused: Pick<AuthorizedRequest, "generation">,
    options: { readonly signal: AbortSignal },
  ) => Promise<boolean>;
}

/** The credentials of a connection by its id, read when they are used: each use goes by what is stored then. */
export type CredentialsOf = (connectionId: string) => Credentials;
