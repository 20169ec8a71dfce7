import type { ListedDelivery } from "../../../bus/deliveries/delivery-records.ts";
import { ENTRY_ID } from "../../../bus/entry-id.ts";
import { mergeNewest } from "../../../bus/topics/entry-merge.ts";
import type { Queryable } from "../../../data/database.ts";
import type { ChannelRow, TopicRow } from "../../../data/tables.ts";
import type { DeliveryRecord } from "../../../event/delivery-record.ts";
import { timeOfId } from "../../../lib/ids.ts";
import type { Deps } from "../../kit/deps.ts";
import { createMatch, type Match } from "./match.ts";

/** Maximum number of channels or topics that a search covers. In a larger organization, search within an app instead. */
export const MAX_SEARCHED_CHANNELS = 1_000;
/** Number of newest records and entries that a search by event id reads. */
export const MAX_SEARCHED = 2_000;
const MAX_SEARCHED_CHARACTERS = 16 * 1024 * 1024;
/** Inlet's own event ids contain the time of arrival. The event was published within this time after it. */
const MAX_DELAY_MS = 600_000;
const CLOCK_TOLERANCE_MS = 5_000;
const OWN_EVENT_ID = /^evt_[0-9a-z]{23}$/;

/** Finds deliveries by their id, or by the id of their request, event or entry. */
export async function findDeliveries(
  deps: Deps,
  organizationId: string,
  text: string,
): Promise<readonly Match[]> {
  const { db, deliveryRecords } = deps;
  if (text.startsWith("del_")) {
    const found = await deliveryRecords.find(organizationId, text);
    const channel = found && (await findChannel(db, organizationId, found.record.channelNumber));
    return found && channel ? [matchOfDelivery(found.record, channel)] : [];
  }
  const channels = await selectChannels(db, organizationId)
    .orderBy("number")
    .limit(MAX_SEARCHED_CHANNELS)
    .execute();
  const channelOf = new Map(channels.map((channel) => [channel.number, channel]));
  const render = (one: ListedDelivery | DeliveryRecord): readonly Match[] => {
    const channel = channelOf.get(one.channelNumber);
    return channel === undefined ? [] : [matchOfDelivery(one, channel)];
  };
  const listed = await deliveryRecords.list(organizationId, [...channelOf.keys()]);
  const ofRequest = listed.filter(({ requestId }) => requestId === text);
  if (ofRequest.length > 0) return ofRequest.flatMap(render);
  const newest = listed.slice(-MAX_SEARCHED).map(({ id }) => id);
  const records = await deliveryRecords.read(organizationId, newest);
  return records
    .filter(({ outcome }) => outcome.events.some(({ id, entryId }) => id === text || entryId === text))
    .flatMap(render);
}

export async function findQuarantinedItem(
  { db, quarantine }: Deps,
  organizationId: string,
  text: string,
): Promise<readonly Match[]> {
  const found = text.startsWith("qr_") ? await quarantine.find(organizationId, text) : undefined;
  const channel = found && (await findChannel(db, organizationId, found.record.channelNumber));
  if (!found || !channel) return [];
  const { id, reason } = found.record;
  const { appId, uid } = channel;
  const title = `${reason} at ${uid}`;
  return [createMatch("quarantinedItem", { id, appId, title }, "apps", appId, "quarantine", id)];
}

type ListedChannel = Pick<ChannelRow, "number" | "appId" | "uid">;

const selectChannels = (db: Queryable, organizationId: string) =>
  db.selectFrom("channels").select(["number", "appId", "uid"]).where("organizationId", "=", organizationId);

const findChannel = (db: Queryable, organizationId: string, number: number) =>
  selectChannels(db, organizationId).where("number", "=", number).executeTakeFirst();

const matchOfDelivery = (
  { id, status }: Pick<ListedDelivery, "id" | "status">,
  { appId, uid }: ListedChannel,
): Match =>
  createMatch("delivery", { id, appId, title: `${status} at ${uid}` }, "apps", appId, "deliveries", id);

/**
 * Finds events by `<topic>/<entry id>`, or by their id.
 *
 * Inlet's own event ids contain their time, so they are found among all retained events. Ids of senders are found among the newest.
 */
export async function findEvents(
  deps: Deps,
  organizationId: string,
  text: string,
): Promise<readonly Match[]> {
  const slash = text.lastIndexOf("/");
  const entryId = text.slice(slash + 1);
  const isPlace = slash > 0 && ENTRY_ID.test(entryId);
  const topics = await listTopics(deps.db, organizationId, isPlace ? text.slice(0, slash) : undefined);
  if (!isPlace) return searchEvents(deps, topics, text);
  const [topic] = topics;
  // Redis rejects ids with a part above 64 bits.
  const isValid = entryId.split("-").every((part) => BigInt(part) < 2n ** 64n);
  if (topic === undefined || !isValid) return [];
  const entry = await deps.topics.findEntry(topic.topic, entryId);
  return entry ? [matchOfEvent(topic, entry.entryId)] : [];
}

type ListedTopic = Pick<TopicRow, "topic" | "appId" | "type">;

const listTopics = (db: Queryable, organizationId: string, topic: string | undefined) =>
  db
    .selectFrom("topics")
    .innerJoin("apps", "apps.id", "topics.appId")
    .select(["topic", "topics.appId", "type"])
    .where("topics.organizationId", "=", organizationId)
    .$if(topic !== undefined, (query) => query.where("topic", "=", topic ?? ""))
    .orderBy("topic")
    .limit(MAX_SEARCHED_CHANNELS)
    .execute();

/** Returns the newest event with this id. Stops at `MAX_SEARCHED` entries or `MAX_SEARCHED_CHARACTERS`. */
async function searchEvents(
  deps: Deps,
  topics: readonly ListedTopic[],
  id: string,
): Promise<readonly Match[]> {
  const rowOf = new Map(topics.map((row) => [row.topic, row]));
  const fromMs = OWN_EVENT_ID.test(id) ? Math.max(0, timeOfId(id) - CLOCK_TOLERANCE_MS) : undefined;
  const range =
    fromMs === undefined ? { from: "-", to: "+" } : { from: `${fromMs}`, to: `${fromMs + MAX_DELAY_MS}` };
  let examined = 0;
  let characters = 0;
  const places = mergeNewest(deps.entries, [...rowOf.keys()], range);
  for await (const { topic, entry } of deps.entries.read(places)) {
    const row = rowOf.get(topic);
    if (row && entry?.fields.id === id) return [matchOfEvent(row, entry.entryId)];
    characters += entry?.fields.data?.length ?? 0;
    if (++examined >= MAX_SEARCHED || characters >= MAX_SEARCHED_CHARACTERS) break;
  }
  return [];
}

const matchOfEvent = ({ topic, appId, type }: ListedTopic, entryId: string): Match =>
  createMatch("event", { id: entryId, appId, title: type }, "apps", appId, "events", topic, entryId);
