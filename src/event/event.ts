/**
 * An event ready to publish. `fields` is the stream entry, with alternating names and values in this order:
 * specversion, id, source, type, time, datacontenttype, data | data_base64, subject?, dataschema?, traceparent?,
 * then the sender's extensions.
 */
export interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly topic: string;
  /** Zero-based index of the item in its delivery. `null` when the event is the whole delivery. */
  readonly item: number | null;
  /** Dedupe key: a hash of at least 128 bits as 22 base64url characters. Empty when deduplication is off. */
  readonly identity: string;
  /** Hash of the data: 64 bits as 11 base64url characters. If a known event has another digest, it is a conflict and not a duplicate. */
  readonly digest: string;
  readonly fields: readonly string[];
  /** A large field value as UTF-8 bytes outside the V8 heap. `at` is its index in `fields`, which contains an empty string there. */
  readonly large?: { readonly at: number; readonly bytes: Buffer };
  /** Estimated size of `fields` and `large` in UTF-8 bytes, for memory budgets and batches. */
  readonly bytes: number;
}

/** Fingerprint of a signed delivery, stored to detect replays: the same signed bytes under another event id or type. */
export interface SignedMark {
  /** Hash of the signed bytes, as 22 base64url characters. */
  readonly identity: string;
  /** Hash of the event ids and types, as 11 base64url characters. */
  readonly digest: string;
}
