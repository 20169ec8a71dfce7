import { subscriptionKey } from "../../event/subscription-keys.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { idBefore } from "../entry-id.ts";
import type { EntryIndex } from "../topics/entry-index.ts";
import type { Groups } from "./groups.ts";

/** The groups of a subscription as they should stand: one on each of its topics, just before the start. */
export interface SubscriptionGroups {
  readonly id: string;
  /** Milliseconds of Redis time; 0: from the first entry on. */
  readonly startMs: number;
  readonly topics: readonly string[];
  readonly isPaused: boolean;
}

const CONCURRENCY = 32;
/** Undelivered entries of one topic that are counted one by one where Redis does not know their number. */
const MAX_COUNTED = 500;
/** Topics asked for lags at once. */
const MAX_LAG_TOPICS = 2_000;

/**
 * Makes missing groups and leaves the others alone; answers the topics whose group was made. Groups come before the set by
 * which readers find their topics, so that no reader is sent to a topic without its group.
 */
export async function ensureGroups(groups: Groups, wanted: SubscriptionGroups): Promise<readonly string[]> {
  const { id, startMs, topics, isPaused } = wanted;
  const startId = idBefore(startMs);
  await groups.setPaused(id, isPaused);
  const made = await mapBounded(topics, CONCURRENCY, (topic) => groups.ensure(topic, id, startId));
  await groups.setTopics(id, topics);
  return topics.filter((_, i) => made[i]);
}

/** Sets the groups of a subscription anew at its start, on all its topics; answers how many pending entries were dropped. */
export async function rewindSubscription(
  groups: Groups,
  { id, startMs, topics }: Omit<SubscriptionGroups, "isPaused">,
): Promise<number> {
  const startId = idBefore(startMs);
  const dropped = await mapBounded(topics, CONCURRENCY, (topic) => groups.reset(topic, id, startId));
  return dropped.reduce((sum, count) => sum + count, 0);
}

/** Removes the groups of a subscription, on the topics in its set and on those given besides, then the set. */
export async function removeSubscription(
  { redis, groups }: { readonly redis: RedisBus; readonly groups: Groups },
  id: string,
  topics: readonly string[] = [],
): Promise<void> {
  const listed = (await redis.call("smembers", [subscriptionKey(id)])) as string[];
  const all = [...new Set([...listed, ...topics])];
  await mapBounded(all, CONCURRENCY, (topic) => groups.remove(topic, id));
  await groups.removeTopics(id);
}

/**
 * How many entries each subscription has not been given yet, over all its topics; null where that is not known, or would be
 * too much to ask for.
 */
export async function readLags(
  deps: { readonly groups: Groups; readonly entries: EntryIndex },
  subscriptions: readonly Pick<SubscriptionGroups, "id" | "topics">[],
): Promise<ReadonlyMap<string, number | null>> {
  const lags = new Map<string, number | null>();
  const topics = [...new Set(subscriptions.flatMap((subscription) => subscription.topics))];
  if (topics.length > MAX_LAG_TOPICS) return lags;
  const wanted = new Set(subscriptions.map(({ id }) => id));
  const byTopic = new Map<string, ReadonlyMap<string, number | undefined>>();
  await mapBounded(topics, CONCURRENCY, async (topic) => {
    const found = (await deps.groups.list(topic)).filter(({ name }) => wanted.has(name));
    const counted = await mapBounded(found, CONCURRENCY, async ({ name, lag, lastDeliveredId }) => {
      return [name, lag ?? (await countAfter(deps.entries, topic, lastDeliveredId))] as const;
    });
    byTopic.set(topic, new Map(counted));
  });
  for (const { id, topics } of subscriptions) {
    let sum: number | null = 0;
    for (const topic of topics) {
      const lag = byTopic.get(topic)?.get(id);
      sum = sum === null || lag === undefined ? null : sum + lag;
    }
    lags.set(id, sum);
  }
  return lags;
}

async function countAfter(
  entries: EntryIndex,
  topic: string,
  lastDeliveredId: string,
): Promise<number | undefined> {
  const { ids, ended } = await entries.listIds(topic, { from: `(${lastDeliveredId}`, to: "+" }, MAX_COUNTED);
  return ended ? ids.length : undefined;
}
