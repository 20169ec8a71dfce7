import type { Receipt } from "../bus/publish/publish-batch.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type {
  EventReceipt,
  ItemFailure,
  Outcome,
  QuarantineReason,
  QuarantineReceipt,
} from "../event/outcome.ts";

const NO_FAILURES: readonly ItemFailure[] = [];

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

const CONFLICTS = {
  conflict: { reason: "id_conflict", detail: (id: string) => `the id ${id} is already used with other data` },
  replayed: {
    reason: "replayed",
    detail: (id: string) => `the same signed bytes arrived earlier with an id or type other than ${id}`,
  },
} as const;

/** Converts events with a conflicting or replayed id to failures. Events of one item with the same reason share one failure. */
export function findConflicts(
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
): readonly ItemFailure[] {
  if (!receipts.some(isConflict)) return NO_FAILURES;
  return (["conflict", "replayed"] as const).flatMap((status) => {
    const conflicting = events.filter((_, i) => receipts[i]?.status === status);
    const { reason, detail } = CONFLICTS[status];
    return [...Map.groupBy(conflicting, ({ item }) => item)].map(([item, ofItem]) => ({
      item,
      reason,
      detail: detail(JSON.stringify(ofItem[0]?.id)),
      definitions: ofItem.map(({ type }) => type),
    }));
  });
}

const isConflict = (receipt: Receipt): receipt is Extract<Receipt, { status: keyof typeof CONFLICTS }> =>
  receipt.status in CONFLICTS;

export function toQuarantineReceipts(
  failures: readonly ItemFailure[],
  ids: readonly string[],
): QuarantineReceipt[] {
  return failures.map(({ reason, path, hint }, i) => {
    const id = ids[i];
    if (id === undefined) throw new Error("Redis returned no record id for a quarantined item");
    return { id, reason, ...(path !== undefined && { path }), ...(hint !== undefined && { hint }) };
  });
}

export function createOutcome(
  received: number,
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
  quarantine: readonly QuarantineReceipt[],
): Outcome {
  const eventReceipts: EventReceipt[] = [];
  let published = 0;
  events.forEach(({ id, type, topic }, i) => {
    const receipt = receipts[i];
    if (receipt === undefined) throw new Error("Redis returned no receipt for an event");
    if (isConflict(receipt)) return;
    if (receipt.status === "published") published++;
    eventReceipts.push({ id, type, topic, entryId: receipt.entryId, status: receipt.status });
  });
  return {
    received,
    published,
    duplicates: eventReceipts.length - published,
    quarantined: quarantine.length,
    events: eventReceipts,
    quarantine,
  };
}
