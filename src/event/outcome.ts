/** All reasons for quarantining an item. The list is closed, because the reason is also a metric label. */
export const QUARANTINE_REASONS = [
  "no_match",
  "id_conflict",
  "invalid_body",
  "id_missing",
  "payload_missing",
  "filter_failed",
  "schema_mismatch",
  "invalid_cloudevent",
  "replayed",
  "too_deep",
  "path_budget",
  "paused",
  "signature_invalid",
  "window_passed",
  "over_limit",
  "no_route",
  "no_install",
] as const;
export type QuarantineReason = (typeof QUARANTINE_REASONS)[number];

export interface ItemFailure {
  /** Zero-based index of the item in its delivery. `null` if the delivery was not split into items. */
  readonly item: number | null;
  readonly reason: QuarantineReason;
  /** Name of the failed field of the event definition, or a JSON Pointer into the data. */
  readonly path?: string;
  readonly detail: string;
  /** How the sender can fix the failure. It is also part of `detail`. It contains no data, because the response shows it. */
  readonly hint?: string;
  /** Set if the item may be a heartbeat of a stream. Only the newest of these are stored, whatever the config says. */
  readonly isHeartbeat?: true;
  /** Event types whose definitions failed, to be run again later. An empty list means all current definitions. */
  readonly definitions: readonly string[];
}

/** Status of a new event. `recovered` means that its channel missed it and a poll found it. */
export type PublishedStatus = "published" | "recovered";

export interface EventReceipt {
  readonly id: string;
  readonly type: string;
  readonly topic: string;
  /** Id of the stream entry. For a duplicate, this is the entry that already exists. */
  readonly entryId: string;
  readonly status: PublishedStatus | "duplicate";
}

export interface QuarantineReceipt {
  readonly id: string;
  readonly reason: QuarantineReason;
  readonly path?: string;
  readonly hint?: string;
}

/**
 * Result of one delivery, and the body of a 200 response. `received` counts items, `published` counts events, and `ignored` counts items
 * that no definition published because of its `when` or of `onNoMatch: ignore`.
 */
export interface Outcome {
  readonly received: number;
  readonly published: number;
  readonly duplicates: number;
  readonly ignored: number;
  readonly quarantined: number;
  readonly events: readonly EventReceipt[];
  readonly quarantine: readonly QuarantineReceipt[];
  /** Uids of the channels that the delivery has woken. `undefined` if its channel wakes none. */
  readonly woken?: readonly string[];
}

/** Returns whether a comparison only listed the item, because it is older than the dedupe window. */
export const isListed = ({ quarantine }: Pick<Outcome, "quarantine">): boolean =>
  quarantine.some(({ reason }) => reason === "window_passed");

export const EMPTY_OUTCOME: Outcome = {
  received: 0,
  published: 0,
  duplicates: 0,
  ignored: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};

export const createDeliveryFailure = (reason: QuarantineReason, detail: string): ItemFailure => ({
  item: null,
  reason,
  detail,
  definitions: [],
});

/**
 * Creates the failure of a delivery with too many items. Used when no sender can split the delivery, for example because the gateway
 * fetched it.
 */
export const tooManyItemsFailure = (limit: number): ItemFailure =>
  createDeliveryFailure("invalid_body", `the delivery contains more than ${limit} items`);
