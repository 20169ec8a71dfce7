import type { DeliveryRecords } from "../../../bus/deliveries/delivery-records.ts";
import type { Groups } from "../../../bus/groups/groups.ts";
import type { QuarantineStore } from "../../../bus/quarantine/quarantine.ts";
import type { EntryPlace } from "../../../bus/topics/entry-merge.ts";
import type { Topics } from "../../../bus/topics/topics.ts";
import { recordAccess } from "../../../data/accounts/audit.ts";
import type { Queryable } from "../../../data/database.ts";
import { readAttributes } from "../../../event/cloud-event.ts";
import type { QuarantineReason } from "../../../event/outcome.ts";
import type { VerifiedDelivery } from "../../../event/received.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/errors.ts";
import type { CompiledChannel } from "../../../ingest/compiled-channel.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { Clock } from "../../../lib/clock.ts";
import { isId } from "../../../lib/ids.ts";
import { deleteCopies, deliveryOf } from "../delivery-copies.ts";

export interface EraseDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "findEntry" | "deleteEntry" | "deleteDeadLetters">;
  readonly groups: Pick<Groups, "list">;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  readonly deliveryRecords: Pick<DeliveryRecords, "list" | "find" | "delete">;
  readonly explain: Explain;
  /** Returns the active version of a channel, or `undefined` when it was deleted. */
  readonly findCompiledChannel: (channelNumber: number) => Promise<CompiledChannel | undefined>;
  readonly clock: Clock;
}

/** Properties of the deleted event by which its copies are recognized. */
interface Erased extends EntryPlace {
  readonly id: string | undefined;
  readonly source: string | undefined;
  /** `undefined` when the event has no data, or too little to identify it. */
  readonly data: Buffer | undefined;
}

interface OfChannel {
  /** `undefined` when the channel was deleted. */
  readonly channel: CompiledChannel | undefined;
  readonly channelNumber: number;
}

interface KeptDelivery {
  /** Reason for the quarantine. `undefined` for a delivery record. */
  readonly reason: QuarantineReason | undefined;
  readonly delivery: VerifiedDelivery;
}

const PAGE = 200;
/** Data shorter than this is not searched for in deliveries, because unrelated deliveries may contain it too. */
const MIN_DATA_BYTES = 64;

/**
 * Deletes an event for privacy from all places: dead letters, pending handler deliveries, quarantine, delivery records
 * and its topic. A quarantined item or delivery record that contains the event is deleted as a whole. The topic entry is
 * deleted last, so that a repeated call can finish an interrupted deletion.
 *
 * @throws ApiError 404 when neither the entry nor a dead letter of it exists
 * @throws UnavailableError
 */
export async function eraseEvent(deps: EraseDeps, caller: Caller, place: EntryPlace): Promise<void> {
  const { db, topics, groups, clock } = deps;
  const { topic, entryId } = place;
  const letters = db.selectFrom("deadLetters").where((eb) => eb.and({ topic, entryId }));
  const [entry, letter, { channelNumber }] = await Promise.all([
    topics.findEntry(topic, entryId),
    letters.select("fields").executeTakeFirst(),
    db.selectFrom("topics").select("channelNumber").where("topic", "=", topic).executeTakeFirstOrThrow(),
  ]);
  const fields = entry ? Object.entries(entry.fields).flat() : letter?.fields;
  if (!fields) throw notFound("event");
  const nowMs = clock();
  const entity = { action: "delete", entity: "event", id: `${topic}/${entryId}` } as const;
  await recordAccess(db, caller, [entity], nowMs);
  const { organizationId } = caller;
  const gone = { topic, entryId, organizationId, deletedAt: new Date(nowMs) };
  await db
    .insertInto("deletedEvents")
    .values(gone)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await db
    .deleteFrom("deadLetters")
    .where((eb) => eb.and({ topic, entryId }))
    .execute();
  const names = (await groups.list(topic)).map(({ name }) => name);
  await topics.deleteDeadLetters(topic, entryId, names);
  const { attributes, text } = readAttributes(fields);
  const { id, source, data_base64: base64 = "" } = attributes;
  const bytes = text === undefined ? Buffer.from(base64, "base64") : Buffer.from(text);
  const data = bytes.length < MIN_DATA_BYTES ? undefined : bytes;
  const erased = { ...place, id, source, data };
  const channel = await deps.findCompiledChannel(channelNumber);
  await eraseQuarantined(deps, organizationId, { channel, channelNumber }, erased);
  await eraseDeliveries(deps, organizationId, { channel, channelNumber }, erased);
  await topics.deleteEntry(topic, entryId);
}

async function eraseQuarantined(
  deps: EraseDeps,
  organizationId: string,
  { channel, channelNumber }: OfChannel,
  erased: Erased,
): Promise<void> {
  const { quarantine } = deps;
  const filter = { organizationId, channelNumbers: [channelNumber] };
  const ids: string[] = [];
  for (let total = 1; ids.length < total; ) {
    const page = await quarantine.list(filter, { limit: PAGE, offset: ids.length });
    ids.push(...page.records.map(({ id }) => id));
    total = page.records.length === 0 ? 0 : page.total;
  }
  for (const id of ids) {
    const found = await quarantine.find(organizationId, id);
    if (found === undefined) continue;
    const { record, delivery } = found;
    if (await holds(deps, channel, { reason: record.reason, delivery }, erased))
      await quarantine.delete(organizationId, id);
  }
}

async function eraseDeliveries(
  deps: EraseDeps,
  organizationId: string,
  { channel, channelNumber }: OfChannel,
  erased: Erased,
): Promise<void> {
  const { deliveryRecords } = deps;
  await deleteCopies(deliveryRecords, { organizationId, channelNumber }, async (ids) => {
    const chosen: string[] = [];
    for (const id of ids) {
      const found = await deliveryRecords.find(organizationId, id);
      if (found === undefined) continue;
      const { outcome, hasBody } = found.record;
      // If the record does not list all events of its delivery, the delivery may contain the event.
      const isCut = outcome.events.length < outcome.published + outcome.duplicates;
      const isNamed =
        isCut ||
        outcome.events.some(({ topic, entryId }) => topic === erased.topic && entryId === erased.entryId);
      const kept = { reason: undefined, delivery: deliveryOf(found) };
      if (isNamed || (hasBody && (await holds(deps, channel, kept, erased)))) chosen.push(id);
    }
    return chosen;
  });
}

/**
 * Returns true if the delivery contains the event.
 *
 * Event ids are compared first. Data is compared only when ids prove nothing. Data of paused deliveries is never
 * compared: they are not published yet, and may contain a different event with the same data.
 */
async function holds(
  { explain }: EraseDeps,
  channel: CompiledChannel | undefined,
  { reason, delivery }: KeptDelivery,
  { topic, id, source, data }: Erased,
): Promise<boolean> {
  // A delivery that failed verification must not be parsed.
  const isRead = channel !== undefined && reason !== "signature_invalid";
  const isByData = !isRead || reason === "id_conflict" || (id !== undefined && isMadeHere(id));
  const known = isByData && reason !== "paused" ? data : undefined;
  if (known !== undefined && delivery.body.includes(known)) return true;
  if (!isRead) return false;
  const text = known?.toString();
  const items = await explain(channel, delivery);
  return items.some(({ events }) =>
    events.some((event) => {
      if (event.topic !== topic) return false;
      if (text !== undefined && event.data === text) return true;
      return event.id === id && (source === undefined || event.event.source === source);
    }),
  );
}

/** Whether the gateway generated the id. Such an id differs each time the same delivery is processed. */
const isMadeHere = (id: string): boolean => isId("evt", id) || isId("qr", id.split("/", 1)[0] ?? "");
