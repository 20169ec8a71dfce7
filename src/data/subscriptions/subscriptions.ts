import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

export type SubscriptionRow = Row<"subscriptions">;

const START_COLUMNS = ["id", "startMs", "agent", "state"] as const;

export interface CoveredTopic {
  readonly topic: string;
  /** Time from which the consumer group should exist: when the topic, its channel or the subscription was created, whichever is latest. */
  readonly since: Date;
}

export type SubscriptionStart = Pick<SubscriptionRow, "id" | "startMs" | "agent" | "state">;

/**
 * Returns the topics of each subscription, ordered by creation time and name. Deleted subscriptions are omitted. Retired topics are
 * included while their row and their channel exist, because their last entries must still be read.
 */
export async function listCoverage(
  db: Queryable,
  subscriptionIds: readonly string[],
): Promise<ReadonlyMap<string, readonly CoveredTopic[]>> {
  const coverage = new Map<string, CoveredTopic[]>();
  if (subscriptionIds.length === 0) return coverage;
  const rows = await db
    .selectFrom("subscriptions as s")
    .leftJoin(
      (eb) =>
        eb
          .selectFrom("topics")
          .innerJoin("channels", "channels.number", "topics.channelNumber")
          .select(["topics.appId", "topics.channelUid", "topics.type", "topics.topic", "topics.createdAt"])
          .select(sql<Date>`greatest(topics.created_at, channels.created_at)`.as("since"))
          .as("t"),
      (join) =>
        join
          .onRef("t.appId", "=", "s.appId")
          .on(sql<boolean>`s.event_uid IN ('*', t.channel_uid || ':*', t.channel_uid || ':' || t.type)`),
    )
    .select(["s.id", "s.createdAt", "t.topic", "t.since"])
    .where("s.id", "in", subscriptionIds)
    .orderBy("t.createdAt")
    .orderBy("t.topic")
    .execute();
  for (const { id, createdAt, topic, since } of rows) {
    const covered = coverage.get(id) ?? [];
    coverage.set(id, covered);
    if (topic !== null && since !== null)
      covered.push({ topic, since: since > createdAt ? since : createdAt });
  }
  return coverage;
}

export function pageSubscriptions(
  db: Queryable,
  page: { readonly after: string; readonly limit: number; readonly appId?: string },
): Promise<readonly SubscriptionStart[]> {
  let query = db
    .selectFrom("subscriptions")
    .select(START_COLUMNS)
    .where("id", ">", page.after)
    .orderBy("id")
    .limit(page.limit);
  if (page.appId !== undefined) query = query.where("appId", "=", page.appId);
  return query.execute();
}

export function findSubscriptionStarts(
  db: Queryable,
  ids: readonly string[],
): Promise<readonly SubscriptionStart[]> {
  if (ids.length === 0) return Promise.resolve([]);
  return db.selectFrom("subscriptions").select(START_COLUMNS).where("id", "in", ids).execute();
}

/** Returns the ids of the apps that have topics of these channels, including topics of deleted channels. */
export async function listAppsOfChannels(
  db: Queryable,
  channelNumbers: readonly number[],
): Promise<readonly string[]> {
  if (channelNumbers.length === 0) return [];
  const rows = await db
    .selectFrom("topics")
    .select("appId")
    .distinct()
    .where("channelNumber", "in", channelNumbers)
    .execute();
  return rows.map(({ appId }) => appId);
}
