import type { ChannelConfig, ChannelIdentity } from "../../event/channel.ts";
import type { Definition } from "../../event/definition.ts";
import { topicOf } from "../../event/topic.ts";
import type { Queryable, Trx } from "../database.ts";
import type { AppRow, ChannelRow, TopicRow } from "../tables.ts";
import { setSchemaVersions } from "./schema-versions.ts";

/**
 * Updates the topics of a channel to match its event definitions. Adds missing topics, and retires those whose definition was
 * removed. Takes over the topics of a deleted channel with the same uid. Existing topics keep their names, even if an earlier
 * version used another format.
 */
export async function writeTopics(
  trx: Trx,
  channel: ChannelIdentity,
  source: { readonly events: readonly Definition[]; readonly retention: ChannelConfig["retention"] },
  nowMs: number,
): Promise<void> {
  const { organizationId, appId: id, uid, number } = channel;
  const rows = await topicRows(trx, { id, organizationId }, [{ ...source, uid, number }], nowMs);
  const kept = rows.map(({ row }) => row.topic);
  await retire(trx, number, nowMs)
    .where((eb) => (kept.length > 0 ? eb("topic", "not in", kept) : eb.lit(true)))
    .execute();
  await insertRows(trx, rows, nowMs);
}

interface TopicSource {
  readonly uid: string;
  readonly number: number;
  readonly events: readonly Definition[];
  readonly retention: ChannelConfig["retention"];
}

type TopicApp = Pick<AppRow, "id" | "organizationId">;

/** Inserts the topics of new channels. Takes over existing topics as `writeTopics` does. */
export async function insertTopics(
  trx: Trx,
  app: TopicApp,
  channels: readonly TopicSource[],
  nowMs: number,
): Promise<void> {
  await insertRows(trx, await topicRows(trx, app, channels, nowMs), nowMs);
}

async function topicRows(
  trx: Trx,
  { id: appId, organizationId }: TopicApp,
  channels: readonly TopicSource[],
  nowMs: number,
) {
  const uids = channels.map(({ uid }) => uid);
  const known = await trx
    .selectFrom("topics")
    .select(["channelUid", "type", "topic"])
    .where("appId", "=", appId)
    .where("channelUid", "in", uids)
    .execute();
  // Join the parts of the key with a space, because a uid contains none.
  const stored = new Map(known.map(({ channelUid, type, topic }) => [`${channelUid} ${type}`, topic]));
  return channels.flatMap(({ uid: channelUid, number: channelNumber, events, retention }) =>
    events.map(({ type, schema }) => {
      const topic =
        stored.get(`${channelUid} ${type}`) ?? topicOf({ organizationId, appId, channelUid, type });
      const row = {
        topic,
        organizationId,
        appId,
        channelNumber,
        channelUid,
        type,
        ...retention,
        createdAt: new Date(nowMs),
        retiredAt: null,
      };
      return { row, schema };
    }),
  );
}

/** Maximum rows per INSERT. A row has eleven parameters, and PostgreSQL's protocol allows 65,535 parameters in a statement ("Bind"). */
const ROWS_AT_ONCE = 5_000;

type TopicRows = Awaited<ReturnType<typeof topicRows>>;

async function insertRows(trx: Trx, rows: TopicRows, nowMs: number): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_AT_ONCE)
    await insertSome(trx, rows.slice(at, at + ROWS_AT_ONCE));
  const schemas = rows.map(({ row: { topic }, schema }) => ({ topic, schema }));
  await setSchemaVersions(trx, schemas, nowMs);
}

async function insertSome(trx: Trx, rows: TopicRows): Promise<void> {
  await trx
    .insertInto("topics")
    .values(rows.map(({ row }) => row))
    .onConflict((conflict) =>
      conflict.column("topic").doUpdateSet((row) => ({
        channelNumber: row.ref("excluded.channelNumber"),
        maxAgeSeconds: row.ref("excluded.maxAgeSeconds"),
        maxEntries: row.ref("excluded.maxEntries"),
        maxBytes: row.ref("excluded.maxBytes"),
        retiredAt: null,
      })),
    )
    .execute();
}

export async function retireTopics(
  trx: Trx,
  channelNumber: number,
  nowMs: number,
): Promise<readonly string[]> {
  await retire(trx, channelNumber, nowMs).execute();
  return listTopicsOf(trx, channelNumber);
}

const retire = (trx: Trx, channelNumber: number, nowMs: number) =>
  trx
    .updateTable("topics")
    .set({ retiredAt: new Date(nowMs) })
    .where("channelNumber", "=", channelNumber)
    .where("retiredAt", "is", null);

/** Lists all topics that a channel has ever published to, including retired ones. */
export async function listTopicsOf(db: Queryable, channelNumber: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("topics")
    .select("topic")
    .where("channelNumber", "=", channelNumber)
    .orderBy("topic")
    .execute();
  return rows.map(({ topic }) => topic);
}

/** Lists all topics to which a source may write: those of its channel, and those of the channel that it reconciles. */
export async function listSourceTopics(
  db: Queryable,
  { appId, config, number }: Pick<ChannelRow, "appId" | "config" | "number">,
): Promise<readonly string[]> {
  const own = await listTopicsOf(db, number);
  if (typeof config.reconciles !== "string") return own;
  const other = await db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", appId)
    .where("uid", "=", config.reconciles)
    .executeTakeFirst();
  return other === undefined ? own : [...own, ...(await listTopicsOf(db, other.number))];
}

/**
 * Locks the row of a topic, if there is one. Until the transaction ends, no other channel can take over the topic and no removal
 * can delete its data.
 */
export async function lockTopic(trx: Trx, topic: string): Promise<void> {
  await trx.selectFrom("topics").select("topic").where("topic", "=", topic).forUpdate().execute();
}

/** Returns a page of topics of all organizations, ordered by name, for the retention sweeper. */
export function pageTopics(db: Queryable, after: string, limit: number): Promise<readonly TopicRow[]> {
  return db
    .selectFrom("topics")
    .selectAll()
    .where("topic", ">", after)
    .orderBy("topic")
    .limit(limit)
    .execute();
}

/** Deletes the row of a retired topic, unless a channel uses the topic again. */
export async function forgetRetiredTopic(db: Queryable, topic: string): Promise<void> {
  await db.deleteFrom("topics").where("topic", "=", topic).where("retiredAt", "is not", null).execute();
}
