import type { Values } from "./values.ts";

/** One delivery as it arrived, before anything of it is believed: verification reads this and nothing else does. */
export interface RawRequest {
  readonly method: string;
  /** Path with query, as sent. */
  readonly target: string;
  /** Names in lower case; a repeated header is an array. */
  readonly headers: Values;
  /** The bytes after `Content-Encoding` was undone: what a sender signs. */
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** Where it comes from, as the gateway knows it; absent: nowhere. */
  readonly clientAddress?: string;
  /** As its answer tells it. */
  readonly requestId?: string | undefined;
}

/**
 * A delivery whose sender is who the channel expects. `headers` and `query` no longer hold what the verification scheme
 * reads (credentials and signatures go no further: not to rules, quarantine, tails or logs). Repeated header and query
 * names are arrays.
 */
export interface VerifiedDelivery {
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly body: Buffer;
  readonly arrivedAtMs: number;
  /** An id that the signature covers: names the delivery where no `idPath` does. */
  readonly deliveryId?: string | undefined;
  /** A digest of what was signed: the same again under another id or type is a replay. */
  readonly boundTo?: string | undefined;
  /** SHA-256 of the body, 43 base64url characters, where verifying has made it. */
  readonly bodyHash?: string | undefined;
}

/**
 * Where a pull source stands, committed with the events that came before it. `epoch` is the fencing token of the owner;
 * `version` is the cursor's version that this write replaces (0 where there is none yet): the write is refused when the
 * stored one differs. Each write makes a new version, also where the cursor itself stays (`value` absent): what follows one
 * that was not written is refused.
 */
export interface SourcePosition {
  readonly epoch: number;
  readonly version: number;
  readonly value?: string;
}
