import type { Receipt } from "../bus/publish/publish.ts";
import type { OutgoingEvent } from "../event/event.ts";
import type { EventReceipt, ItemFailure, Outcome, QuarantineReceipt } from "../event/outcome.ts";

const NONE: readonly ItemFailure[] = [];

/** The events whose id is known with other data, as failures of their items: one per item, naming all that conflict. */
export function conflictsOf(
  events: readonly OutgoingEvent[],
  receipts: readonly Receipt[],
): readonly ItemFailure[] {
  if (!receipts.some(({ status }) => status === "conflict")) return NONE;
  const byItem = new Map<number | null, OutgoingEvent[]>();
  events.forEach((event, i) => {
    if (receipts[i]?.status !== "conflict") return;
    const known = byItem.get(event.item);
    if (known === undefined) byItem.set(event.item, [event]);
    else known.push(event);
  });
  return [...byItem].map(([item, conflicting]) => ({
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
