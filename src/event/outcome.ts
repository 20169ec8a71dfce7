/** Why an item is kept in quarantine instead of being published. A closed set: it is also a metric label. */
export const QUARANTINE_REASONS = [
  "no_match",
  "id_conflict",
  "invalid_body",
  "id_missing",
  "payload_missing",
  "schema_mismatch",
  "invalid_cloudevent",
  "replayed",
  "too_deep",
  "path_budget",
  "paused",
  "signature_invalid",
] as const;
export type QuarantineReason = (typeof QUARANTINE_REASONS)[number];

/** An item (or the delivery as a whole) that could not become the events that its channel's definitions ask for. */
export interface ItemFailure {
  /** The item's index in its delivery, from 0; null: the delivery as a whole, which was not split, or could not be. */
  readonly item: number | null;
  readonly reason: QuarantineReason;
  /** The definition's setting, or the JSON Pointer into the data, that the reason is about. */
  readonly path?: string;
  /** One sentence for the operator. */
  readonly detail: string;
  /** The types of the definitions that failed, which a re-drive runs again; empty: all of today's. */
  readonly definitions: readonly string[];
}

export interface EventReceipt {
  readonly id: string;
  readonly type: string;
  readonly topic: string;
  /** The stream entry: this event's own, or the first one's where it is a duplicate. */
  readonly entryId: string;
  readonly status: "published" | "duplicate";
}

export interface QuarantineReceipt {
  readonly id: string;
  readonly reason: QuarantineReason;
  readonly path?: string;
}

/** The outcome of one delivery; the body of a hook's 200. `received` counts items, `published` events. */
export interface Outcome {
  readonly received: number;
  readonly published: number;
  readonly duplicates: number;
  readonly quarantined: number;
  readonly events: readonly EventReceipt[];
  readonly quarantine: readonly QuarantineReceipt[];
}
