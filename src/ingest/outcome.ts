import type { Receipt } from "../bus/publish/publish.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type {
  EventReceipt,
  ItemFailure,
  Outcome,
  QuarantineReason,
  QuarantineReceipt,
} from "../event/outcome.ts";

const NONE: readonly ItemFailure[] = [];

/** A failure of the delivery as a whole. */
export const wholeFailure = (reason: QuarantineReason, detail: string): ItemFailure => ({
  item: null,
  reason,
  detail,
  definitions: [],
});

/** Where no sender can be told to send less: of a fetched delivery, or one that was accepted before. */
export const tooManyItems = (limit: number): ItemFailure =>
  wholeFailure("invalid_body", `the delivery holds more than ${limit} items`);

/** The events whose id is known with other data, as failures of their items: one per item, naming all that conflict. */
export function conflictsOf(
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
): readonly ItemFailure[] {
  if (!receipts.some(({ status }) => status === "conflict")) return NONE;
  const conflicts = events.filter((_, i) => receipts[i]?.status === "conflict");
  return [...Map.groupBy(conflicts, ({ item }) => item)].map(([item, conflicting]) => ({
    item,
    reason: "id_conflict",
    detail: `the id ${JSON.stringify(conflicting[0]?.id)} is known with other data`,
    definitions: conflicting.map(({ type }) => type),
  }));
}

export function quarantineReceiptsOf(
  failures: readonly ItemFailure[],
  ids: readonly string[],
): QuarantineReceipt[] {
  return failures.map(({ reason, path }, i) => {
    const id = ids[i];
    if (id === undefined) throw new Error("a quarantined item got no record");
    return path === undefined ? { id, reason } : { id, reason, path };
  });
}

export function outcomeOf(
  received: number,
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
  quarantine: readonly QuarantineReceipt[],
): Outcome {
  const answered: EventReceipt[] = [];
  let published = 0;
  events.forEach(({ id, type, topic }, i) => {
    const receipt = receipts[i];
    if (receipt === undefined) throw new Error("an event got no receipt");
    if (receipt.status === "conflict") return;
    if (receipt.status === "published") published++;
    answered.push({ id, type, topic, entryId: receipt.entryId, status: receipt.status });
  });
  return {
    received,
    published,
    duplicates: answered.length - published,
    quarantined: quarantine.length,
    events: answered,
    quarantine,
  };
}
