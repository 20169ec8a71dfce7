import { deadLettersKey, subscriptionKey } from "../../event/subscription-keys.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { parseEntryMs } from "../entry-id.ts";
import type { EntryIndex } from "../topics/entry-index.ts";
import { type GroupInfo, type Groups, readRedisTimeMs } from "./groups.ts";

/** Consumer groups of a subscription, one for each topic. Each group starts with the first entry after `startId`. */
export interface SubscriptionGroups {
  readonly id: string;
  readonly startId: string;
  readonly topics: readonly string[];
  readonly isPaused: boolean;
}

const CONCURRENCY = 32;
/** Maximum number of undelivered entries to count if Redis does not know the lag of a group. Above it, the lag is unknown. */
const MAX_COUNTED = 500;
/** Maximum number of topics per request for lags. Above it, no lags are read and all backlogs are unknown. */
const MAX_LAG_TOPICS = 2_000;

/**
 * Creates the missing consumer groups of a subscription, and returns the topics of these groups. Readers learn about a topic only
 * after its group exists.
 */
export async function ensureGroups(groups: Groups, wanted: SubscriptionGroups): Promise<readonly string[]> {
  const { id, startId, topics, isPaused } = wanted;
  await groups.setPaused(id, isPaused);
  const made = await mapBounded(topics, CONCURRENCY, (topic) => groups.ensure(topic, id, startId));
  await groups.setTopics(id, topics);
  return topics.filter((_, i) => made[i]);
}

/** Returns the number of dropped pending entries. */
export async function rewindSubscription(
  groups: Groups,
  { id, startId, topics }: Omit<SubscriptionGroups, "isPaused">,
): Promise<number> {
  const dropped = await mapBounded(topics, CONCURRENCY, (topic) => groups.reset(topic, id, startId));
  return dropped.reduce((sum, count) => sum + count, 0);
}

/** Removes the consumer groups of a deleted subscription on `topics` and on its known topics. Then removes the list of known topics. */
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

/** Undelivered events of a subscription across all its topics. `null` means unknown. */
export interface Backlog {
  readonly lag: number | null;
  /** Age of the oldest undelivered event, by the clock of Redis. 0 if there is none, `null` if unknown. */
  readonly lagSeconds: number | null;
  readonly pending: number | null;
  /** Number of the readers' dead letters. */
  readonly setAside: number | null;
}

export const UNKNOWN_BACKLOG: Backlog = { lag: null, lagSeconds: null, pending: null, setAside: null };

/** Returns backlogs by subscription id. Returns an empty map if the subscriptions have more than `MAX_LAG_TOPICS` topics in total. */
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
      const waiting = await readLag(deps.entries, topic, group, nowMs);
      return [group.name, { ...waiting, pending: group.pending, setAside }] as const;
    });
    byTopic.set(topic, new Map(read));
  });
  return new Map(
    subscriptions.map(({ id, topics }) => {
      const each = topics.map((topic) => byTopic.get(topic)?.get(id) ?? UNKNOWN_BACKLOG);
      const combine = (of: keyof Backlog, join: (a: number, b: number) => number): number | null =>
        each.reduce<number | null>((all, { [of]: one }) => {
          return all === null || one === null ? null : join(all, one);
        }, 0);
      const sum = (a: number, b: number): number => a + b;
      const backlog = {
        lag: combine("lag", sum),
        pending: combine("pending", sum),
        setAside: combine("setAside", sum),
      };
      return [id, { ...backlog, lagSeconds: combine("lagSeconds", Math.max) }];
    }),
  );
}

async function readLag(
  entries: EntryIndex,
  topic: string,
  { lag, lastDeliveredId }: GroupInfo,
  nowMs: number,
): Promise<Pick<Backlog, "lag" | "lagSeconds">> {
  if (lag === 0) return { lag: 0, lagSeconds: 0 };
  const limit = lag === undefined ? MAX_COUNTED : 1;
  const [found] = await entries.listIds([{ topic, from: `(${lastDeliveredId}`, to: "+", limit }]);
  const { ids, ended } = found ?? { ids: [], ended: true };
  const [oldest] = ids;
  const ageMs = oldest === undefined ? 0 : Math.max(0, nowMs - parseEntryMs(oldest.entryId));
  return { lag: lag ?? (ended ? ids.length : null), lagSeconds: ageMs / 1000 };
}
