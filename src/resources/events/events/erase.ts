import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import { recordAccess } from "../../../data/accounts/audit.ts";
import { readAttributes } from "../../../event/cloud-event.ts";
import type { QuarantineReason } from "../../../event/outcome.ts";
import type { VerifiedDelivery } from "../../../event/received.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/errors.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { toRecordedDelivery } from "../../../ingest/recorded-delivery.ts";
import { isId } from "../../../lib/ids.ts";
import type { Deps } from "../../kit/deps.ts";
import { deleteCopies } from "../delivery-copies.ts";

/** Properties of the event to delete, used to find its copies in quarantine and in delivery records. */
interface Erased extends EntryPlace {
  readonly id: string | undefined;
  readonly source: string | undefined;
  /** `undefined` if the event has no data, or if the data is too short to identify the event. */
  readonly data: Buffer | undefined;
}

interface OfChannel {
  /** `undefined` when the channel was deleted. */
  readonly channel: CompiledChannel | undefined;
  readonly channelNumber: number;
}

interface KeptDelivery {
  /** Reason why the delivery is in quarantine, or `undefined` for a delivery record. */
  readonly reason: QuarantineReason | undefined;
  readonly delivery: VerifiedDelivery;
}

const PAGE = 200;
/** Minimum length of data to search for, in bytes. Shorter data may also occur in unrelated deliveries. */
const MIN_DATA_BYTES = 64;

/**
 * Deletes an event for privacy from all places: dead letters, pending handler deliveries, quarantine, delivery records
 * and its topic. A quarantined item or delivery record that contains the event is deleted as a whole. The topic entry is
 * deleted last, so that a repeated call can finish an interrupted deletion.
 *
 * @throws ApiError 404 when neither the entry nor a dead letter of it exists
 * @throws UnavailableError
 */
export async function eraseEvent(deps: Deps, caller: Caller, place: EntryPlace): Promise<void> {
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
  deps: Deps,
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
  deps: Deps,
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
      // The record may list only some events of its delivery. In that case, assume that the delivery contains the deleted event.
      const isCut = outcome.events.length < outcome.published + outcome.duplicates;
      const isNamed =
        isCut ||
        outcome.events.some(({ topic, entryId }) => topic === erased.topic && entryId === erased.entryId);
      const kept = { reason: undefined, delivery: toRecordedDelivery(found) };
      if (isNamed || (hasBody && (await holds(deps, channel, kept, erased)))) chosen.push(id);
    }
    return chosen;
  });
}

/**
 * Returns whether the delivery contains the event, by id or, if ids are inconclusive, by data. Data of paused
 * deliveries is not compared, because it is unpublished and may belong to a different event.
 */
async function holds(
  { explain }: Deps,
  channel: CompiledChannel | undefined,
  { reason, delivery }: KeptDelivery,
  { topic, id, source, data }: Erased,
): Promise<boolean> {
  // Never parse a delivery whose signature was invalid.
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

/** Returns whether the gateway generated the event id. A generated id changes each time the delivery is processed. */
const isMadeHere = (id: string): boolean => isId("evt", id) || isId("qr", id.split("/", 1)[0] ?? "");
