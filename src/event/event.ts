/**
 * One event ready for the bus. `fields` is the entry as it will stand on the stream: name, value, name, value … in the
 * order specversion, id, source, type, time, datacontenttype, data | data_base64, subject?, dataschema?, traceparent?,
 * then the sender's extensions.
 */
export interface OutgoingEvent {
  readonly id: string;
  readonly type: string;
  readonly topic: string;
  /** The item of the delivery that it came from, from 0; null: the delivery as a whole. */
  readonly item: number | null;
  /** The identity for dedupe: a hash of at least 128 bits as 22 base64url characters; "" where nothing is remembered. */
  readonly identity: string;
  /** 64 bits of a hash of the data, as 11 base64url characters: tells a repeat from a conflict. */
  readonly digest: string;
  readonly fields: readonly string[];
  /** A value of `fields` that is large: its bytes in UTF-8, in memory of their own. "" stands in its place. */
  readonly large?: { readonly at: number; readonly bytes: Buffer };
  /** Size of `fields` in UTF-8, with what `large` holds, for budgets and batches; an estimate. */
  readonly bytes: number;
}

/** Signed bytes of a delivery, and a digest of the ids and types of its events, as the bus remembers them. */
export interface SignedMark {
  /** 22 characters, as an event's. */
  readonly identity: string;
  /** 11 characters. */
  readonly digest: string;
}
