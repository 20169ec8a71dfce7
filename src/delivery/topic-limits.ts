import { MEMORY_ALARM_FRACTION } from "../bus/connection/node-facts.ts";
import type { RedisBus } from "../bus/connection/redis.ts";
import type { RedisState } from "../bus/connection/redis-state.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import { writeOverLimit } from "../bus/limits/over-limit.ts";
import { createTrimAcknowledged, createTrimTopic, UNLIMITED } from "../bus/retention/retention.ts";
import { type DefaultTopicBytes, readTopicLimits } from "../data/accounts/organization-limits.ts";
import type { Queryable } from "../data/database.ts";
import type { Log } from "../log.ts";
import { nearestLimits, type StorageUsage } from "./storage-usage.ts";

/** Of its limit, the part to which an organization is trimmed: the next sweep is half a minute away. */
const ROOM_PART = 0.9;

export interface TopicLimitsDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly log: Log;
  /** They count, and go before anything else does. */
  readonly deliveryRecords: Pick<DeliveryRecords, "bytesOf" | "clear">;
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
}

/**
 * Of an organization that holds too much go first its records of deliveries, then what all groups have acknowledged; nothing unread goes
 * unless it has asked for it. Where that is not enough, its hooks and sources wait until retention, or its readers, have made room.
 *
 * Several that keep to their limits may fill Redis together. So while that is nearly full, nobody's limit is above an equal share: those
 * who hold less are not refused for the others. Nothing unread goes for that.
 */
export function createTopicLimits(deps: TopicLimitsDeps): TopicLimits {
  const { db, redis, log, deliveryRecords, topicBytesPerOrganization, ttlMs, mostShown, onTrimmed } = deps;
  const trimAcknowledged = createTrimAcknowledged({ redis });
  const trimTopic = createTrimTopic({ redis });
  /** Owners of the topics that the sweep has not come through yet, or failed at. */
  const awaited = new Map<string, string>();
  const topicsOf = new Map<string, Map<string, number>>();
  let overBefore: ReadonlySet<string> = new Set();
  let usage: readonly StorageUsage[] = [];
  let holdings: { readonly of: ReadonlyMap<string, TopicUsage>; readonly atMs: number } | undefined;

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
        const bytes = await deliveryRecords.bytesOf(owner);
        recorded.set(owner, bytes);
        held.set(owner, sum(topics.values()) + bytes);
      }
      const isWhole = awaited.size === 0;
      const limitOf = await readTopicLimits(db, topicBytesPerOrganization, { held, isWhole });
      const share = shareOf(redis.state(), held.size);
      const inForce = (own: number | undefined) => (own === undefined ? undefined : Math.min(own, share));
      usage = nearestLimits(
        [...held].map(([organization, bytes]) => ({
          organization,
          bytes,
          limit: inForce(limitOf?.(organization).bytes),
        })),
        mostShown,
      );
      if (limitOf === undefined) return;
      // A sum without a topic that failed is no sign of room.
      const short = new Set(awaited.values());
      const over = new Set([...overBefore].filter((organization) => short.has(organization)));
      const found = new Map<string, TopicUsage>();
      for (const [organization, topics] of topicsOf) {
        const { bytes: own, overLimit } = limitOf(organization);
        const limit = inForce(own);
        let bytes = held.get(organization) ?? 0;
        if (own === undefined || limit === undefined) continue;
        found.set(organization, { bytes, limit });
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
        found.set(organization, { bytes, limit });
        if (bytes <= limit) continue;
        over.add(organization);
        if (!overBefore.has(organization))
          log.warn({ event: "storage.over_limit", organization, bytes, limit }, "topics hold too much");
      }
      for (const organization of overBefore)
        if (!over.has(organization))
          log.info({ event: "storage.within_limit", organization }, "topics have room again");
      await writeOverLimit(redis, [...over], ttlMs);
      overBefore = over;
      // What a topic that failed would add is not known.
      if (isWhole) holdings = { of: found, atMs: performance.now() };
    },
    usage: () => usage,
  };
}

/**
 * What each of so many organizations may hold while Redis is nearly full, in bytes, so that there is a share left for one more; without
 * bounds while it is not, or where its memory is not limited.
 */
function shareOf(
  { memoryAlarm, maxMemoryBytes }: Pick<RedisState, "memoryAlarm" | "maxMemoryBytes">,
  holders: number,
): number {
  if (!memoryAlarm || maxMemoryBytes === undefined) return Number.POSITIVE_INFINITY;
  return Math.floor((maxMemoryBytes * MEMORY_ALARM_FRACTION) / (holders + 1));
}

const sum = (numbers: Iterable<number>): number => [...numbers].reduce((total, number) => total + number, 0);
