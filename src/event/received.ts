import type { Values } from "./values.ts";

/** An unverified request. Only verification may read it. */
export interface RawRequest {
  readonly method: string;
  /** Path and query string as sent. */
  readonly target: string;
  /** Headers by lower-case name. A repeated header has an array of values. */
  readonly headers: Values;
  /** Body after decoding `Content-Encoding`, because senders sign the decoded bytes. */
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** IP address of the client. Missing if the request did not come over the network. */
  readonly clientAddress?: string;
  /** Id of the request, also sent to the client in the response header `X-Request-Id`. */
  readonly requestId?: string | undefined;
  /** Id of the trace. Missing if the request is not sampled. */
  readonly traceId?: string | undefined;
}

/**
 * A delivery from a verified sender, without credentials and signatures in `headers` and `query`. Secrets therefore never reach event
 * definitions, quarantine, tails or logs. The values of a repeated name form an array.
 */
export interface VerifiedDelivery {
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Delivery id that the signature covers. It becomes the event id if the event definition has no `idPath`. */
  readonly deliveryId?: string | undefined;
  /** Hash of the signed bytes. The same hash with another event id or type reveals a replay. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body as 43 base64url characters, if it was computed during verification. */
  readonly bodyHash?: string | undefined;
  /** `traceparent` of the span that publishes the delivery. Missing if the delivery is not sampled. */
  readonly traceparent?: string | undefined;
  /** `traceparent` of the poll that has fetched the delivery. Missing if that poll is not sampled. */
  readonly fetchedBy?: string | undefined;
  /** Set if a poll has built the delivery from an item of the provider's API, to find events that the channel missed. */
  readonly reconciled?: Reconciled | undefined;
}

/** How the events of an item are compared with the events that the channel received. */
export interface Reconciled {
  /** `identity` reports an event whose id is known with other data as a conflict. `id` compares ids alone. */
  readonly match: "identity" | "id";
  /** Whether the item is older than the channel's dedupe window, so that the id may have been received and forgotten. */
  readonly isPastWindow: boolean;
}

/**
 * New read position of a pull source, committed in the same write as the events before it. `epoch` is the owner's fencing token.
 * `version` is the cursor version that this write replaces, or 0 for the first write. Redis rejects the write if the stored version
 * differs. Every write creates a new version, even without a `value`, so a write is rejected if the one before it was lost.
 */
export interface SourcePosition {
  /** Internal channel id of the source. Differs from the channel of the events if the source reconciles another channel. */
  readonly source: number;
  readonly epoch: number;
  readonly version: number;
  readonly value?: string;
}
