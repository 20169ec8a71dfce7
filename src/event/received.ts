import type { Values } from "./values.ts";

/** An unverified request. Only verification may read it. */
export interface RawRequest {
  readonly method: string;
  /** Path and query string as sent. */
  readonly target: string;
  /** Names are in lower case. The values of a repeated header form an array. */
  readonly headers: Values;
  /** Body bytes after decoding `Content-Encoding`. Senders sign these bytes. */
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** IP address of the client. Missing when the request did not arrive over the network. */
  readonly clientAddress?: string;
  /** Also sent to the client in the `X-Request-Id` header of the response. */
  readonly requestId?: string | undefined;
}

/**
 * A delivery from a verified sender. `headers` and `query` exclude credentials and signatures, so that these never reach rules,
 * quarantine, tails or logs. The values of a repeated name form an array.
 */
export interface VerifiedDelivery {
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Delivery id covered by the signature. Used as the event id when the definition has no `idPath`. */
  readonly deliveryId?: string | undefined;
  /** Digest of the signed bytes. The same digest under another event id or type is a replay. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body as 43 base64url characters, if verification computed it. */
  readonly bodyHash?: string | undefined;
}

/**
 * New read position of a pull source, committed in the same write as the events before it. `epoch` is the owner's fencing token.
 * `version` is the cursor version that this write replaces, or 0 for the first write. Redis rejects the write if the stored version
 * differs. Every write creates a new version, even without a `value`, so a write is rejected if the one before it was lost.
 */
export interface SourcePosition {
  readonly epoch: number;
  readonly version: number;
  readonly value?: string;
}
