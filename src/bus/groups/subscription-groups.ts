import { deadLettersKey, subscriptionKey } from "../../event/subscription-keys.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { idBefore, msOfEntry } from "../entry-id.ts";
import type { EntryIndex } from "../topics/entry-index.ts";
import { type GroupInfo, type Groups, readRedisTimeMs } from "./groups.ts";

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

/** Where a subscription's readers stand, over all its topics. */
export interface Backlog {
  /** Entries that its group has not been given yet; null where that is not known. */
  readonly lag: number | null;
  /** The age of the oldest of them by Redis time; 0 where there is none. */
  readonly lagSeconds: number | null;
  /** Entries that were given and not acknowledged. */
  readonly pending: number | null;
  /** Entries that readers set aside after their last attempt. */
  readonly setAside: number | null;
}

export const UNKNOWN_BACKLOG: Backlog = { lag: null, lagSeconds: null, pending: null, setAside: null };

/** By subscription; nothing of those that are together too many to ask for. */
export async function readBacklogs(
  deps: { readonly redis: RedisBus; readonly groups: Groups; readonly entries: EntryIndex },
  subscriptions: readonly Pick<SubscriptionGroups, "id" | "topics">[],
): Promise<ReadonlyMap<string, Backlog>> {
  const topics = [...new Set(subscriptions.flatMap((subscription) => subscription.topics))];
  if (topics.length > MAX_LAG_TOPICS) return new Map();
  const wanted = new Set(subscriptions.map(({ id }) => id));
  const nowMs = await readRedisTimeMs(deps.redis);
  const byTopic = new Map<string, ReadonlyMap<string, Backlog>>();
  await mapBounded(topics, CONCURRENCY, async (topic) => {
    const found = (await deps.groups.list(topic)).filter(({ name }) => wanted.has(name));
    const read = await mapBounded(found, CONCURRENCY, async (group) => {
      const setAside = Number(await deps.redis.call("xlen", [deadLettersKey(topic, group.name)]));
      const waiting = await readWaiting(deps.entries, topic, group, nowMs);
      return [group.name, { ...waiting, pending: group.pending, setAside }] as const;
    });
    byTopic.set(topic, new Map(read));
  });
  return new Map(
    subscriptions.map(({ id, topics }) => {
      const each = topics.map((topic) => byTopic.get(topic)?.get(id) ?? UNKNOWN_BACKLOG);
      const over = (of: keyof Backlog, join: (a: number, b: number) => number): number | null =>
        each.reduce<number | null>((all, { [of]: one }) => {
          return all === null || one === null ? null : join(all, one);
        }, 0);
      const sum = (a: number, b: number): number => a + b;
      const backlog = {
        lag: over("lag", sum),
        pending: over("pending", sum),
        setAside: over("setAside", sum),
      };
      return [id, { ...backlog, lagSeconds: over("lagSeconds", Math.max) }];
    }),
  );
}

async function readWaiting(
  entries: EntryIndex,
  topic: string,
  { lag, lastDeliveredId }: GroupInfo,
  nowMs: number,
): Promise<Pick<Backlog, "lag" | "lagSeconds">> {
  if (lag === 0) return { lag: 0, lagSeconds: 0 };
  const range = { from: `(${lastDeliveredId}`, to: "+" };
  const { ids, ended } = await entries.listIds(topic, range, lag === undefined ? MAX_COUNTED : 1);
  const [oldest] = ids;
  const ageMs = oldest === undefined ? 0 : Math.max(0, nowMs - msOfEntry(oldest));
  return { lag: lag ?? (ended ? ids.length : null), lagSeconds: ageMs / 1000 };
}
