import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import { removeSubscription } from "../bus/groups/subscription-groups.ts";
import { lockTopic } from "../data/channels/topics.ts";
import type { Queryable } from "../data/database.ts";
import { listCoverage } from "../data/subscriptions/subscriptions.ts";

export interface UndoUncoveredDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
}

type TopicsOfSubscriptions = ReadonlyMap<string, readonly string[]>;

/**
 * To be called after groups were made on topics that subscriptions covered a moment ago, or may have been. A channel or a subscription
 * deleted since may have been cleared away before: then they are removed again, with streams that came with them, and
 * with the keys of a subscription that is gone. What an outage keeps here goes with its retired topic.
 *
 * @param made topics by subscription
 * @throws UnavailableError
 */
export async function undoUncovered(deps: UndoUncoveredDeps, made: TopicsOfSubscriptions): Promise<void> {
  const { db, groups } = deps;
  const coverage = await listCoverage(db, [...made.keys()]);
  for (const [id, topics] of made) if (!coverage.has(id)) await removeSubscription(deps, id, topics);
  const left = new Map([...made].filter(([id]) => coverage.has(id)));
  for (const [topic, ids] of Map.groupBy(uncoveredOf(left, coverage), ([, topic]) => topic)) {
    const on: TopicsOfSubscriptions = new Map(ids.map(([id]) => [id, [topic]]));
    await db.transaction().execute(async (trx) => {
      // A new channel of the same uid may be taking the topic over, with the groups on it.
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
