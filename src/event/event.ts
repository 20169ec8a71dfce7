/**
 * An event ready to publish. `fields` is the stream entry, with alternating names and values in this order:
 * specversion, id, source, type, time, datacontenttype, data | data_base64, subject?, dataschema?, traceparent?,
 * then the extensions. They are those of the sender, or the `partitionkey` of the definition.
 */
export interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly topic: string;
  /** Zero-based index of the item in its delivery. `null` if the event is the whole delivery. */
  readonly item: number | null;
  /** Hash for deduplication: at least 128 bits as 22 base64url characters. Empty if deduplication is off. */
  readonly identity: string;
  /**
   * Hash of the data, 64 bits as 11 base64url characters, or `ANY_DIGEST`. A known event with a different hash is a conflict, not a
   * duplicate.
   */
  readonly digest: string;
  readonly fields: readonly string[];
  /**
   * A large value as UTF-8 bytes outside the V8 heap. `at` is the index in `fields` that it belongs to, which contains an empty
   * string.
   */
  readonly large?: { readonly at: number; readonly bytes: Buffer };
  /** Attributes that the definition should set, but for which the item has no usable value. `undefined` if there are none. */
  readonly unset?: readonly EventAttribute[];
  /** Estimated size of `fields` and `large` in bytes, used for memory limits and batch sizes. */
  readonly bytes: number;
}

export type EventAttribute = "time" | "subject" | "partitionkey";

/** Digest of an event that is compared by its id alone. The publish script treats it as equal to every other digest. */
export const ANY_DIGEST = "*".repeat(11);

/** Fingerprint of a signed delivery, stored to detect replays. A replay has the same signed bytes but another event id or type. */
export interface SignedMark {
  /** Hash of the signed bytes, as 22 base64url characters. */
  readonly identity: string;
  /** Hash of the delivery's event ids and types, as 11 base64url characters. */
  readonly digest: string;
}
