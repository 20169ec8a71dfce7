import type { RedisBus } from "../bus/connection/redis.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import { OVER_LIMIT_KEY } from "../bus/keys.ts";
import { createWriteOverLimit } from "../bus/limits/over-limit.ts";
import { createTrimAcknowledged, createTrimTopic, UNLIMITED } from "../bus/retention/retention.ts";
import { type DefaultTopicBytes, readTopicLimits } from "../data/accounts/organization-limits.ts";
import type { Queryable } from "../data/database.ts";
import type { Log } from "../log.ts";
import { nearestLimits, type StorageUsage } from "./storage-usage.ts";

/** Fraction of its limit to which an organization is trimmed, so that its topics can grow until the next measurement. */
const ROOM_PART = 0.9;
/** Fraction to which the total storage must shrink while Redis is nearly full. Only the largest organizations must shrink. */
const LEFT_PART = 0.9;
/** Fraction of an equal share of Redis memory. While Redis is nearly full, organizations below it are never blocked. */
const PART_OF_A_SHARE = 0.25;
/** Fraction of used Redis memory below which Redis no longer counts as nearly full. The memory alarm sets the opposite threshold. */
const ROOM_AGAIN_FRACTION = 0.8;

export interface TopicLimitsDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly log: Log;
  /** Stored records of deliveries. They count as storage of their organization and are deleted before any events. */
  readonly deliveryRecords: Pick<DeliveryRecords, "readBytes" | "clear">;
  readonly topicBytesPerOrganization: DefaultTopicBytes;
  /** Called with the number of entries that were trimmed, read or unread, because the organization chose `trim`. */
  readonly onTrimmed?: ((entries: number) => void) | undefined;
  /** Validity of a measurement in ms. It must last until the next measurement ends. */
  readonly ttlMs: number;
  /** Maximum number of organizations in `usage`. */
  readonly mostShown: number;
}

export interface TopicUsage {
  readonly bytes: number;
  readonly limit: number;
  /**
   * Whether the organization's deliveries are rejected and its sources wait. This applies to organizations over their limit, and to the
   * largest ones while Redis is nearly full.
   */
  readonly waits: boolean;
}

/**
 * Measures the topic storage of each organization, then applies the limits.
 *
 * For an organization over its limit, first its delivery records are deleted, then entries that all groups have acknowledged. Unread
 * entries are trimmed only if the organization chose `trim`. If it is still over the limit, its hooks and sources are blocked until
 * retention or its readers free storage.
 *
 * Organizations within their limits can still fill Redis together. While Redis is nearly full, the largest ones are blocked as if they were
 * over their limits. This never trims unread entries.
 */
export function createTopicLimits(deps: TopicLimitsDeps) {
  const { db, redis, log, deliveryRecords, topicBytesPerOrganization, ttlMs, mostShown, onTrimmed } = deps;
  const trimAcknowledged = createTrimAcknowledged({ redis });
  const trimTopic = createTrimTopic({ redis });
  const writeOverLimit = createWriteOverLimit(redis);
  /** Topics that could not be measured yet, with their organizations. */
  const awaited = new Map<string, string>();
  const topicsOf = new Map<string, Map<string, number>>();
  let overBefore: ReadonlySet<string> = new Set();
  let usage: readonly StorageUsage[] = [];
  let holdings: { readonly of: ReadonlyMap<string, TopicUsage>; readonly atMs: number } | undefined;

  /**
   * Returns the maximum size per organization while Redis is nearly full, otherwise infinity.
   *
   * The limit applies from the memory alarm until memory usage is clearly lower. If it ended with the alarm, organizations would be blocked
   * and unblocked on every sweep. A Redis key records the blocked organizations, so that a new lease holder continues.
   */
  async function levelNow(held: readonly number[]): Promise<number> {
    const { memoryAlarm, memoryUsedFraction = 1, maxMemoryBytes } = redis.state();
    if (maxMemoryBytes === undefined || memoryUsedFraction < ROOM_AGAIN_FRACTION)
      return Number.POSITIVE_INFINITY;
    if (!memoryAlarm && (await redis.call("exists", [OVER_LIMIT_KEY])) === 0) return Number.POSITIVE_INFINITY;
    const share = maxMemoryBytes / (held.length + 1);
    return Math.max(waterLevelOf(held), share * PART_OF_A_SHARE);
  }

  /** Trims the oldest entries of each topic until the fraction `part` of its size is left. Returns the remaining bytes of all topics. */
  async function trimUnread(organization: string, topics: ReadonlyMap<string, number>, part: number) {
    let [left, removed] = [0, 0];
    for (const [topic, bytes] of topics) {
      const after = await trimTopic({ topic, ...UNLIMITED, maxBytes: Math.floor(bytes * part) });
      left += after.bytes;
      removed += after.removed;
    }
    onTrimmed?.(removed);
    log.warn(
      { event: "storage.trimmed", organization, removed },
      "the oldest events of an organization over its storage limit were trimmed",
    );
    return left;
  }

  return {
    /** Storage of all organizations that have a limit. `undefined` if there is no recent measurement. */
    holdings: () =>
      holdings !== undefined && performance.now() - holdings.atMs < ttlMs ? holdings.of : undefined,
    begin(): void {
      awaited.clear();
      topicsOf.clear();
    },
    expect: (topic: string, organizationId: string) => void awaited.set(topic, organizationId),
    note(topic: string, bytes: number): void {
      const owner = awaited.get(topic);
      awaited.delete(topic);
      if (owner === undefined || bytes === 0) return;
      const topics = topicsOf.get(owner) ?? new Map<string, number>();
      topicsOf.set(owner, topics.set(topic, bytes));
    },
    /**
     * Applies the limits after all topics were measured.
     *
     * @throws UnavailableError
     */
    async settle(): Promise<void> {
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
      // An organization whose topics were not all measured stays blocked, because its sum is incomplete.
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
          log.warn(
            { event: "storage.over_limit", organization, bytes, limit },
            "organization reached its topic storage limit",
          );
      }
      for (const organization of overBefore)
        if (!over.has(organization))
          log.info(
            { event: "storage.within_limit", organization },
            "organization is below its topic storage limit again",
          );
      await writeOverLimit([...over], ttlMs);
      overBefore = over;
      // Only complete sums are published, because the size of the remaining topics is unknown.
      if (isWhole) holdings = { of: found, atMs: performance.now() };
    },
    usage: () => usage,
  };
}

/**
 * Returns the maximum size per organization that reduces the total storage to `LEFT_PART`. Only larger organizations would have to shrink.
 */
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
