import type { Groups } from "../../../bus/groups/groups.ts";
import type { QuarantineStore } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import type { EntryPlace } from "../../../bus/topics/entry-merge.ts";
import type { Topics } from "../../../bus/topics/topics.ts";
import { recordAccess } from "../../../data/accounts/audit.ts";
import type { Queryable } from "../../../data/database.ts";
import { readAttributes } from "../../../event/cloud-event.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/problem.ts";
import type { Explain } from "../../../ingest/explain.ts";
import type { LiveChannel } from "../../../ingest/live-channel.ts";
import type { Clock } from "../../../lib/clock.ts";

export interface EraseDeps {
  readonly db: Queryable;
  readonly topics: Pick<Topics, "findEntry" | "deleteEntry" | "deleteLetters">;
  readonly groups: Pick<Groups, "list">;
  readonly quarantine: Pick<QuarantineStore, "list" | "find" | "delete">;
  readonly explain: Explain;
  /** The channel in force; undefined where it was deleted. */
  readonly findLiveChannel: (channelNumber: number) => Promise<LiveChannel | undefined>;
  readonly clock: Clock;
}

/** By which a copy of the event is known. */
interface Erased extends EntryPlace {
  readonly id: string | undefined;
  /** As text or base64; undefined where it has none. */
  readonly data: string | undefined;
}

const PAGE = 200;
/** A shorter text may stand in a body for reasons of its own. */
const MIN_DATA_CHARS = 16;

/**
 * Deletes an event for privacy wherever it is kept: as a dead letter, on its way to a handler, in quarantine (with the whole
 * delivery that it came in), on its topic. The entry goes last: where it ends early, a repeated call finds what is left.
 *
 * @throws ApiError 404 where there is nothing of it, UnavailableError
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
  await topics.deleteLetters(topic, entryId, names);
  const { attributes, text } = readAttributes(fields);
  const erased = { ...place, id: attributes.id, data: text ?? attributes.data_base64 };
  await eraseQuarantined(deps, organizationId, channelNumber, erased);
  await topics.deleteEntry(topic, entryId);
}

async function eraseQuarantined(
  deps: EraseDeps,
  organizationId: string,
  channelNumber: number,
  erased: Erased,
): Promise<void> {
  const { quarantine } = deps;
  const channel = await deps.findLiveChannel(channelNumber);
  const filter = { organizationId, channelNumbers: [channelNumber] };
  const ids: string[] = [];
  for (let total = 1; ids.length < total; ) {
    const page = await quarantine.list(filter, { limit: PAGE, offset: ids.length });
    ids.push(...page.records.map(({ id }) => id));
    total = page.records.length === 0 ? 0 : page.total;
  }
  for (const id of ids) {
    const found = await quarantine.find(organizationId, id);
    if (found && (await holds(deps, channel, found, erased))) await quarantine.delete(organizationId, id);
  }
}

/** The delivery would become that event, or its body holds the event's data. */
async function holds(
  { explain }: EraseDeps,
  channel: LiveChannel | undefined,
  { record, delivery }: QuarantinedItem,
  { topic, id, data }: Erased,
): Promise<boolean> {
  if (data !== undefined && data.length >= MIN_DATA_CHARS && delivery.body.includes(data)) return true;
  // Nobody has believed it: it is not parsed.
  if (channel === undefined || record.reason === "signature_invalid") return false;
  const items = await explain(channel, delivery);
  return items.some(({ events }) =>
    events.some((event) => event.topic === topic && (event.id === id || event.data === (data ?? null))),
  );
}
