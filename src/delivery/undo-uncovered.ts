import type { Groups } from "../bus/groups/groups.ts";
import { lockTopic } from "../data/channels/topics.ts";
import type { Queryable } from "../data/database.ts";
import { listCoverage } from "../data/subscriptions/subscriptions.ts";

export interface UndoUncoveredDeps {
  readonly db: Queryable;
  readonly groups: Groups;
}

/**
 * To be called after groups were made on topics that subscriptions covered a moment ago. A channel or a subscription deleted since
 * may have been cleared away before they were made: then they are removed again, and streams that came with them.
 *
 * @param made topics by subscription
 * @throws UnavailableError
 */
export async function undoUncovered(
  { db, groups }: UndoUncoveredDeps,
  made: ReadonlyMap<string, readonly string[]>,
): Promise<void> {
  for (const [id, topic] of await uncoveredOf(db, made)) {
    await db.transaction().execute(async (trx) => {
      // A new channel of the same uid may be taking the topic over, with the groups on it.
      await lockTopic(trx, topic);
      const [still] = await uncoveredOf(trx, new Map([[id, [topic]]]));
      if (still) await groups.remove(topic, id);
    });
  }
}

async function uncoveredOf(
  db: Queryable,
  made: ReadonlyMap<string, readonly string[]>,
): Promise<readonly (readonly [id: string, topic: string])[]> {
  const some = [...made].filter(([, topics]) => topics.length > 0);
  const coverage = await listCoverage(
    db,
    some.map(([id]) => id),
  );
  return some.flatMap(([id, topics]) => {
    const covered = new Set(coverage.get(id)?.map(({ topic }) => topic));
    return topics.filter((topic) => !covered.has(topic)).map((topic) => [id, topic] as const);
  });
}
