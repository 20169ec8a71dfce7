import type { Receipt } from "../bus/publish/publish.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type {
  EventReceipt,
  ItemFailure,
  Outcome,
  QuarantineReason,
  QuarantineReceipt,
} from "../event/outcome.ts";

const NO_FAILURES: readonly ItemFailure[] = [];

/** A failure of the delivery as a whole. */
export const createDeliveryFailure = (reason: QuarantineReason, detail: string): ItemFailure => ({
  item: null,
  reason,
  detail,
  definitions: [],
});

/** Where no sender can be told to send less: of a fetched delivery, or one that was accepted before. */
export const tooManyItemsFailure = (limit: number): ItemFailure =>
  createDeliveryFailure("invalid_body", `the delivery contains more than ${limit} items`);

const CONFLICTS = {
  conflict: { reason: "id_conflict", detail: (id: string) => `the id ${id} is known with other data` },
  replayed: {
    reason: "replayed",
    detail: (id: string) => `the same signed bytes came before under another id or type than ${id}`,
  },
} as const;

/** The events that the bus did not take, as failures of their items: one per item and reason, naming all that it did not take. */
export function findConflicts(
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
): readonly ItemFailure[] {
  if (!receipts.some(isConflict)) return NO_FAILURES;
  return (["conflict", "replayed"] as const).flatMap((status) => {
    const refused = events.filter((_, i) => receipts[i]?.status === status);
    const { reason, detail } = CONFLICTS[status];
    return [...Map.groupBy(refused, ({ item }) => item)].map(([item, ofItem]) => ({
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
  return failures.map(({ reason, path }, i) => {
    const id = ids[i];
    if (id === undefined) throw new Error("a quarantined item got no record");
    return path === undefined ? { id, reason } : { id, reason, path };
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
    if (receipt === undefined) throw new Error("an event got no receipt");
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
