import type { RedisBus } from "../bus/connection/redis.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import { OVER_LIMIT_KEY } from "../bus/keys.ts";
import { createWriteOverLimit } from "../bus/limits/over-limit.ts";
import { createTrimAcknowledged, createTrimTopic, UNLIMITED } from "../bus/retention/retention.ts";
import { type DefaultTopicBytes, readTopicLimits } from "../data/accounts/organization-limits.ts";
import type { Queryable } from "../data/database.ts";
import type { Log } from "../log.ts";
import { nearestLimits, type StorageUsage } from "./storage-usage.ts";

/** Of its limit, the part to which an organization is trimmed: the next sweep is half a minute away. */
const ROOM_PART = 0.9;
/** Of what all hold together, what is left where those that hold most give way. */
const LEFT_PART = 0.9;
/** An organization that holds less than this part of an equal share of Redis' memory is never refused for what else is in it. */
const PART_OF_A_SHARE = 0.25;
/** Of Redis' memory: below it is not nearly full any more. */
const ROOM_AGAIN_FRACTION = 0.8;

export interface TopicLimitsDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly log: Log;
  /** They count, and go before anything else does. */
  readonly deliveryRecords: Pick<DeliveryRecords, "readBytes" | "clear">;
  /** What topics of one organization may hold by default. */
  readonly topicBytesPerOrganization: DefaultTopicBytes;
  /** Told of entries that went, be they read or not, of an organization that has asked for it. */
  readonly onTrimmed?: ((entries: number) => void) | undefined;
  /** How long what is found holds: longer than until the next sweep ends. */
  readonly ttlMs: number;
  /** How many organizations `usage` names. */
  readonly mostShown: number;
}

/** Sums what organizations hold during a sweep of all topics, and says in the end who holds too much. */
export interface TopicLimits {
  readonly begin: () => void;
  readonly note: (topic: string, bytes: number) => void;
  readonly expect: (topic: string, organizationId: string) => void;
  /** @throws UnavailableError */
  readonly settle: () => Promise<void>;
  /** As the last sweep found it. */
  readonly usage: () => readonly StorageUsage[];
  /** By organization, as the last sweep has found it; undefined where none has of late. Those without a limit are missing. */
  readonly holdings: () => ReadonlyMap<string, TopicUsage> | undefined;
}

/** The bytes that an organization's topics hold, and may hold. */
export interface TopicUsage {
  readonly bytes: number;
  readonly limit: number;
  /** Its deliveries are refused, and its sources wait: it is over its limit, or holds most of a Redis that is nearly full. */
  readonly waits: boolean;
}

/**
 * Of an organization that holds too much go first its records of deliveries, then what all groups have acknowledged; nothing unread goes
 * unless it has asked for it. Where that is not enough, its hooks and sources wait until retention, or its readers, have made room.
 *
 * Several that keep to their limits may fill Redis together. So while that is nearly full, those that hold most are refused, as if they
 * were over their limits; an organization that holds little is not. Nothing unread goes for that.
 */
export function createTopicLimits(deps: TopicLimitsDeps): TopicLimits {
  const { db, redis, log, deliveryRecords, topicBytesPerOrganization, ttlMs, mostShown, onTrimmed } = deps;
  const trimAcknowledged = createTrimAcknowledged({ redis });
  const trimTopic = createTrimTopic({ redis });
  const writeOverLimit = createWriteOverLimit(redis);
  /** Owners of the topics that the sweep has not come through yet, or failed at. */
  const awaited = new Map<string, string>();
  const topicsOf = new Map<string, Map<string, number>>();
  let overBefore: ReadonlySet<string> = new Set();
  let usage: readonly StorageUsage[] = [];
  let holdings: { readonly of: ReadonlyMap<string, TopicUsage>; readonly atMs: number } | undefined;

  /**
   * What nobody may hold more of while Redis is nearly full. From the alarm on, and until there is room: did it end with the alarm, all
   * would write again, and wait again, with each sweep. That somebody waits stands in Redis, whichever gateway has seen to it.
   */
  async function levelNow(held: readonly number[]): Promise<number> {
    const { memoryAlarm, memoryUsedFraction = 1, maxMemoryBytes } = redis.state();
    if (maxMemoryBytes === undefined || memoryUsedFraction < ROOM_AGAIN_FRACTION)
      return Number.POSITIVE_INFINITY;
    if (!memoryAlarm && (await redis.call("exists", [OVER_LIMIT_KEY])) === 0) return Number.POSITIVE_INFINITY;
    const share = maxMemoryBytes / (held.length + 1);
    return Math.max(waterLevelOf(held), share * PART_OF_A_SHARE);
  }

  /** Each of its topics to the same part of what it holds, the oldest entries first. Answers the bytes that are left. */
  async function trimUnread(organization: string, topics: ReadonlyMap<string, number>, part: number) {
    let [left, removed] = [0, 0];
    for (const [topic, bytes] of topics) {
      const after = await trimTopic({ topic, ...UNLIMITED, maxBytes: Math.floor(bytes * part) });
      left += after.bytes;
      removed += after.removed;
    }
    onTrimmed?.(removed);
    log.warn({ event: "storage.trimmed", organization, removed }, "the oldest events of full topics went");
    return left;
  }

  return {
    holdings: () =>
      holdings !== undefined && performance.now() - holdings.atMs < ttlMs ? holdings.of : undefined,
    begin() {
      awaited.clear();
      topicsOf.clear();
    },
    expect: (topic, organizationId) => void awaited.set(topic, organizationId),
    note(topic, bytes) {
      const owner = awaited.get(topic);
      awaited.delete(topic);
      if (owner === undefined || bytes === 0) return;
      const topics = topicsOf.get(owner) ?? new Map<string, number>();
      topicsOf.set(owner, topics.set(topic, bytes));
    },
    async settle() {
      const held = new Map<string, number>();
      const recorded = new Map<string, number>();
      for (const [owner, topics] of topicsOf) {
        const bytes = await deliveryRecords.readBytes(owner);
        recorded.set(owner, bytes);
        held.set(owner, sum(topics.values()) + bytes);
      }
      const isWhole = awaited.size === 0;
      const limitOf = await readTopicLimits(db, topicBytesPerOrganization, { held, isWhole });
      usage = nearestLimits(
        [...held].map(([organization, bytes]) => ({
          organization,
          bytes,
          limit: limitOf?.(organization).bytes,
        })),
        mostShown,
      );
      if (limitOf === undefined) return;
      // A sum without a topic that failed is no sign of room.
      const short = new Set(awaited.values());
      const over = new Set([...overBefore].filter((organization) => short.has(organization)));
      const found = new Map<string, TopicUsage>();
      const limited = [...held].flatMap(([organization, bytes]) =>
        limitOf(organization).bytes === undefined ? [] : bytes,
      );
      const level = await levelNow(limited);
      for (const [organization, topics] of topicsOf) {
        const { bytes: own, overLimit } = limitOf(organization);
        let bytes = held.get(organization) ?? 0;
        if (own === undefined) continue;
        const limit = Math.min(own, level);
        found.set(organization, { bytes, limit: own, waits: false });
        if (bytes <= limit) continue;
        await deliveryRecords.clear(organization);
        bytes -= recorded.get(organization) ?? 0;
        for (const [topic, before] of topics) {
          if (bytes <= limit) break;
          const after = await trimAcknowledged(topic);
          topics.set(topic, after);
          bytes += after - before;
        }
        if (bytes > own && overLimit === "trim")
          bytes = await trimUnread(organization, topics, (own / bytes) * ROOM_PART);
        const waits = bytes > limit;
        found.set(organization, { bytes, limit: own, waits });
        if (!waits) continue;
        over.add(organization);
        if (!overBefore.has(organization))
          log.warn({ event: "storage.over_limit", organization, bytes, limit }, "topics hold too much");
      }
      for (const organization of overBefore)
        if (!over.has(organization))
          log.info({ event: "storage.within_limit", organization }, "topics have room again");
      await writeOverLimit([...over], ttlMs);
      overBefore = over;
      // What a topic that failed would add is not known.
      if (isWhole) holdings = { of: found, atMs: performance.now() };
    },
    usage: () => usage,
  };
}

/** The level above which, summed over all organizations, a tenth of what they hold together lies (water-filling). */
function waterLevelOf(held: readonly number[]): number {
  const ranked = held.toSorted((a, b) => a - b);
  let left = sum(ranked) * LEFT_PART;
  for (const [i, bytes] of ranked.entries()) {
    const equal = left / (ranked.length - i);
    if (bytes > equal) return Math.floor(equal);
    left -= bytes;
  }
  return Number.POSITIVE_INFINITY;
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0);
