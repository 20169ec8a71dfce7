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
  /** 64 bits of a hash of the data as 11 base64url characters. Distinguishes a duplicate from a conflict. */
  readonly digest: string;
  readonly fields: readonly string[];
  /** A large value of `fields` as UTF-8 bytes outside the V8 heap. `fields[at]` is an empty string. */
  readonly large?: { readonly at: number; readonly bytes: Buffer };
  /** Estimated size of `fields` and `large` in UTF-8 bytes, for memory budgets and batches. */
  readonly bytes: number;
}

/** Fingerprint of a signed delivery, stored to detect replays: the same signed bytes under another event id or type. */
export interface SignedMark {
  /** Hash of the signed bytes, 22 characters like an event's `identity`. */
  readonly identity: string;
  /** Hash of the event ids and types, 11 characters. */
  readonly digest: string;
}
