import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import { removeSubscription } from "../bus/groups/subscription-groups.ts";
import { lockTopic } from "../data/channels/topics.ts";
import type { Queryable } from "../data/database.ts";
import { listCoverage } from "../data/subscriptions/subscriptions.ts";

export interface RemoveUncoveredDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
}

type TopicsOfSubscriptions = ReadonlyMap<string, readonly string[]>;

/**
 * Removes consumer groups that no subscription needs. Call this after groups were or may have been created: a channel or subscription may
 * have been deleted, and its Redis data removed, just before that.
 *
 * Also removes streams that were created only for these groups, and the keys of deleted subscriptions. If an outage prevents the removal,
 * the housekeeper deletes the groups later together with their retired topic.
 *
 * @param made topics that may have new groups, by subscription
 * @throws UnavailableError
 */
export async function removeUncoveredGroups(
  deps: RemoveUncoveredDeps,
  made: TopicsOfSubscriptions,
): Promise<void> {
  const { db, groups } = deps;
  const coverage = await listCoverage(db, [...made.keys()]);
  for (const [id, topics] of made) if (!coverage.has(id)) await removeSubscription(deps, id, topics);
  const left = new Map([...made].filter(([id]) => coverage.has(id)));
  for (const [topic, ids] of Map.groupBy(uncoveredOf(left, coverage), ([, topic]) => topic)) {
    const on: TopicsOfSubscriptions = new Map(ids.map(([id]) => [id, [topic]]));
    await db.transaction().execute(async (trx) => {
      // Locks the topic, because a new channel with the same uid may start to use it.
      await lockTopic(trx, topic);
      const uncovered = uncoveredOf(on, await listCoverage(trx, [...on.keys()]));
      for (const [id] of uncovered) await groups.remove(topic, id);
    });
  }
}

function uncoveredOf(
  made: TopicsOfSubscriptions,
  coverage: Awaited<ReturnType<typeof listCoverage>>,
): readonly (readonly [id: string, topic: string])[] {
  return [...made].flatMap(([id, topics]) => {
    const covered = new Set(coverage.get(id)?.map(({ topic }) => topic));
    return topics.filter((topic) => !covered.has(topic)).map((topic) => [id, topic] as const);
  });
}
