import type { ChannelIdentity, CommonSettings } from "../../event/channel.ts";
import type { Definition } from "../../event/definition.ts";
import { topicOf } from "../../event/topic.ts";
import type { Queryable, Trx } from "../database.ts";
import type { TopicRow } from "../tables.ts";

/**
 * Makes the topics of a channel what its definitions say: missing ones are added, those of definitions that are gone are
 * retired. A topic that an earlier channel of the same uid has left is taken over. One that stands keeps its name, by whatever rule
 * that was made.
 */
export async function writeTopics(
  trx: Trx,
  channel: ChannelIdentity,
  source: { readonly events: readonly Definition[]; readonly retention: CommonSettings["retention"] },
  nowMs: number,
): Promise<void> {
  const { organizationId, appId, uid: channelUid, number: channelNumber } = channel;
  const known = await trx
    .selectFrom("topics")
    .select(["type", "topic"])
    .where((eb) => eb.and({ appId, channelUid }))
    .execute();
  const stored = new Map(known.map(({ type, topic }) => [type, topic]));
  const rows = source.events.map(({ type }) => ({
    topic: stored.get(type) ?? topicOf({ organizationId, appId, channelUid, type }),
    organizationId,
    appId,
    channelNumber,
    channelUid,
    type,
    ...source.retention,
    createdAt: new Date(nowMs),
    retiredAt: null,
  }));
  const kept = rows.map(({ topic }) => topic);
  await retire(trx, channelNumber, nowMs)
    .where((eb) => (kept.length > 0 ? eb("topic", "not in", kept) : eb.lit(true)))
    .execute();
  if (rows.length === 0) return;
  await trx
    .insertInto("topics")
    .values(rows)
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

/** Retires all topics of a channel that is deleted; answers their names. */
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

/** All topics that were ever written for a channel, those that it no longer publishes to included. */
export async function listTopicsOf(db: Queryable, channelNumber: number): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("topics")
    .select("topic")
    .where("channelNumber", "=", channelNumber)
    .orderBy("topic")
    .execute();
  return rows.map(({ topic }) => topic);
}

/** Topics of all organizations by name, after the given one: for the sweeper, which visits them in turn. */
export function pageTopics(db: Queryable, after: string, limit: number): Promise<readonly TopicRow[]> {
  return db
    .selectFrom("topics")
    .selectAll()
    .where("topic", ">", after)
    .orderBy("topic")
    .limit(limit)
    .execute();
}

/** Forgets a topic whose stream is empty, unless a channel has taken it up again. */
export async function forgetRetiredTopic(db: Queryable, topic: string): Promise<void> {
  await db.deleteFrom("topics").where("topic", "=", topic).where("retiredAt", "is not", null).execute();
}
