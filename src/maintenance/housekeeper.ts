import { randomUUID } from "node:crypto";
import type { RedisBus } from "../bus/connection/redis.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import type { Groups } from "../bus/groups/groups.ts";
import type { AppendedListeners } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import { type RetainedTopic, startRetentionSweeper } from "../bus/retention/retention.ts";
import { createInspectGroups } from "../bus/retention/retention-risk.ts";
import type { Topics } from "../bus/topics/topics.ts";
import { expireAudit } from "../data/accounts/audit-retention.ts";
import type { DefaultTopicBytes } from "../data/accounts/organization-limits.ts";
import { pageOrganizations } from "../data/accounts/organizations.ts";
import { forgetRetiredTopic, pageTopics } from "../data/channels/topics.ts";
import type { Queryable } from "../data/database.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import { settleRemovals } from "../data/removals.ts";
import { ageCounts } from "../data/series/age-counts.ts";
import { expireDeadLetters } from "../data/subscriptions/dead-letters.ts";
import type { Clock } from "../lib/clock.ts";
import { startLoop } from "../lib/loop.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import { inPages } from "../lib/pages.ts";
import { endsWithin } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import { clearRemoval } from "./clear-removal.ts";
import { startRetentionWatch } from "./retention-watch.ts";
import { nearestLimits, type StorageUsage } from "./storage-usage.ts";
import { createTopicLimits, type TopicLimitsDeps } from "./topic-limits.ts";

export interface HousekeeperDeps {
  readonly db: Queryable;
  /** Reports each event that this gateway publishes, because each gateway trims the topics to which it has published. */
  readonly appended: Pick<AppendedListeners, "subscribe">;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly topics: Topics;
  readonly quarantine: Pick<QuarantineStore, "purge" | "expire" | "readUsage">;
  readonly deliveryRecords: Pick<DeliveryRecords, "purge" | "readBytes" | "clear">;
  readonly clock: Clock;
  readonly log: Log;
  readonly auditRetentionDays: number;
  readonly topicBytesPerOrganization: DefaultTopicBytes;
  readonly onTrimmed?: TopicLimitsDeps["onTrimmed"];
  /** Whether this gateway may do the cluster-wide housekeeping. If false, it only trims its own topics and processes its own deletions. */
  readonly takesTurns?: boolean;
  /** Maximum number of subscriptions, and of organizations, with separate metrics. Defaults to 100. */
  readonly mostShown?: number;
  readonly timing?: Partial<HousekeeperTiming>;
}

export type HousekeeperTiming = typeof TIMING;

/** Trims topics, deletes expired data and removes the Redis data of deleted channels. Disposal leaves unfinished work to other gateways. */
export type Housekeeper = ReturnType<typeof startHousekeeper>;

const TIMING = {
  /** Interval at which deleted channels and subscriptions are removed from Redis, in ms. */
  tickMs: 1_000,
  /** Lock duration of the gateway that does the housekeeping, in ms. If it dies, another gateway takes over after this time. */
  leaseMs: 15_000,
  sweepEveryMs: 30_000,
  expireEveryMs: 300_000,
  /** Interval at which unread events that will soon be deleted are searched for, in ms. */
  watchEveryMs: 30_000,
  /** Interval at which the quarantine usage of organizations is measured, in ms. */
  usageEveryMs: 60_000,
  /**
   * Minimum age of an unused topic before it is deleted. Must exceed ten minutes, because a gateway without current configuration may still
   * publish to it.
   */
  retiredForMs: 900_000,
};
/**
 * Fraction of used Redis memory above which topics are measured more often, so that large organizations are limited before Redis is full.
 */
const HURRY_FRACTION = 0.75;
/**
 * Validity of the list of organizations over their limit, in measurement intervals. It must outlast a change of the gateway that measures.
 */
const LIMIT_SWEEPS = 4;
const LEAST_LIMIT_MS = 60_000;
const LEASE = "housekeeper";
const PAGE = 500;
/** Maximum time in ms that an API response waits until deleted data is removed from Redis. The removal continues afterwards. */
const SETTLE_WAIT_MS = 2_000;

/**
 * Starts the housekeeper. The lease holder trims topics, processes removals, watches unread events, and deletes expired quarantine items,
 * dead letters, audit entries and empty retired topics. While the lease moves, two gateways may safely do this at the same time.
 */
export function startHousekeeper(deps: HousekeeperDeps) {
  const { db, redis, log, clock, takesTurns = true, mostShown = 100 } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const claim = { name: LEASE, holder: randomUUID(), ttlMs: timing.leaseMs };
  const stopping = new AbortController();
  const { signal } = stopping;
  let heldUntilMs = 0;
  let claimedAtMs = Number.NEGATIVE_INFINITY;
  let expiredAtMs = Number.NEGATIVE_INFINITY;
  let measuredAtMs = Number.NEGATIVE_INFINITY;
  let quarantineUsage: readonly StorageUsage[] = [];
  const failing = new Set<string>();

  const isHolder = (): boolean => !signal.aborted && performance.now() < heldUntilMs;

  /** Unused topics that are old enough to be deleted if they are empty. */
  const retired = new Set<string>();

  const limits = createTopicLimits({
    db,
    redis,
    log,
    topicBytesPerOrganization: deps.topicBytesPerOrganization,
    mostShown,
    deliveryRecords: deps.deliveryRecords,
    onTrimmed: deps.onTrimmed,
    ttlMs: Math.max(LEAST_LIMIT_MS, LIMIT_SWEEPS * timing.sweepEveryMs),
  });

  const sweeper = startRetentionSweeper({
    redis,
    log,
    intervalMs: timing.sweepEveryMs,
    isHurried: () => (redis.state().memoryUsedFraction ?? 0) >= HURRY_FRACTION,
    topics: allTopics,
    onSwept: async (topic, left, bytes) => {
      limits.note(topic, bytes);
      if (left > 0 || !retired.has(topic)) return;
      await forgetTopic(deps, topic, new Date(clock() - timing.retiredForMs));
    },
  });

  deps.appended.subscribe(sweeper.noteAppended);

  const topicPages = () =>
    inPages("topic", "", PAGE, async (after, limit) => (isHolder() ? pageTopics(db, after, limit) : []));

  const watch = startRetentionWatch({
    db,
    log,
    isHolder,
    everyMs: timing.watchEveryMs,
    pages: topicPages,
    inspectGroups: createInspectGroups({ redis }),
    mostShown,
  });

  async function* allTopics(): AsyncGenerator<RetainedTopic> {
    retired.clear();
    limits.begin();
    for await (const page of topicPages()) {
      for (const { topic, organizationId, maxAgeSeconds, maxEntries, maxBytes, retiredAt } of page) {
        if (!isHolder()) return;
        limits.expect(topic, organizationId);
        if (retiredAt && retiredAt.getTime() < clock() - timing.retiredForMs) retired.add(topic);
        yield { topic, maxAgeSeconds, maxEntries, maxBytes };
      }
    }
    if (isHolder()) await attempt("topic_limits", limits.settle);
  }

  async function renew(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - claimedAtMs < timing.leaseMs / 3) return;
    const isOurs = await claimLease(db, claim);
    claimedAtMs = nowMs;
    heldUntilMs = isOurs ? nowMs + timing.leaseMs : 0;
  }

  async function attempt(name: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      if (failing.delete(name))
        log.info({ event: "housekeeping.recovered", duty: name }, "a housekeeping task works again");
    } catch (err) {
      if (signal.aborted || failing.has(name)) return;
      failing.add(name);
      log.warn(
        { event: "housekeeping.failing", duty: name, err },
        "a housekeeping task failed and will be retried",
      );
    }
  }

  const settle = (): Promise<void> =>
    attempt("removals", () => settleRemovals(db, (removal) => clearRemoval(deps, removal), { signal }));

  async function tick(): Promise<void> {
    await renew();
    if (!isHolder()) return;
    await settle();
    if (performance.now() - measuredAtMs > timing.usageEveryMs) {
      measuredAtMs = performance.now();
      await attempt("quarantine_usage", async () => {
        quarantineUsage = nearestLimits(await readQuarantineUsage(deps, signal), mostShown);
      });
    }
    if (performance.now() - expiredAtMs <= timing.expireEveryMs) return;
    expiredAtMs = performance.now();
    await attempt("quarantine_expiry", () => expireQuarantine(deps, signal));
    await attempt("dead_letter_expiry", () => expireDeadLetters(db, clock(), { signal }));
    await attempt("counts_aging", () => ageCounts(db, clock(), { signal }));
    await attempt("audit_expiry", () => expireAudit(db, deps.auditRetentionDays, { nowMs: clock(), signal }));
  }

  const loop = takesTurns
    ? startLoop({
        step: tick,
        everyMs: timing.tickMs,
        onFailing: (err) =>
          log.warn({ event: "housekeeper.failing", err }, "the housekeeper's lease cannot be renewed"),
        onRecovered: () =>
          log.info({ event: "housekeeper.recovered" }, "the housekeeper's lease is renewed again"),
      })
    : undefined;
  return {
    /** Removes the Redis data of deleted channels and subscriptions now. Waits up to two seconds and never rejects. */
    settleNow: async (): Promise<void> => void (await endsWithin(SETTLE_WAIT_MS, settle())),
    atRisk: watch.atRisk,
    backlogs: watch.backlogs,
    backlogsById: watch.backlogsById,
    /**
     * Topic storage of the organizations that are closest to their limits, plus a sum of all others. Empty if another gateway does the
     * housekeeping.
     */
    topicUsage: () => (isHolder() ? limits.usage() : []),
    quarantineUsage: () => (isHolder() ? quarantineUsage : []),
    isHolder,
    topicHoldings: limits.holdings,
    async [Symbol.asyncDispose](): Promise<void> {
      stopping.abort();
      await Promise.all([sweeper, watch, loop].map((part) => part?.[Symbol.asyncDispose]()));
      if (!loop) return;
      await releaseLease(db, claim).catch((err: unknown) => {
        log.warn(
          { event: "housekeeper.lease_not_released", err },
          "the housekeeper's lease could not be released and will expire",
        );
      });
    },
  };
}

/** Deletes an empty, unused topic. Locks its row, so that a new channel with the same topic waits and then creates the topic again. */
async function forgetTopic(
  { db, topics }: Pick<HousekeeperDeps, "db" | "topics">,
  topic: string,
  before: Date,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await trx
      .selectFrom("topics")
      .select("topic")
      .where("topic", "=", topic)
      .where("retiredAt", "<", before)
      .forUpdate()
      .executeTakeFirst();
    if (row && (await topics.deleteEmpty(topic))) await forgetRetiredTopic(trx, topic);
  });
}

/** @throws UnavailableError */
async function expireQuarantine(
  { db, quarantine }: Pick<HousekeeperDeps, "db" | "quarantine">,
  signal: AbortSignal,
): Promise<void> {
  for await (const page of pageOrganizations(db)) {
    for (const { id } of page) {
      signal.throwIfAborted();
      await quarantine.expire(id);
    }
  }
}

const READS_AT_ONCE = 8;

/** @throws UnavailableError */
async function readQuarantineUsage(
  { db, quarantine }: Pick<HousekeeperDeps, "db" | "quarantine">,
  signal: AbortSignal,
): Promise<readonly StorageUsage[]> {
  const found: StorageUsage[] = [];
  for await (const page of pageOrganizations(db)) {
    signal.throwIfAborted();
    await mapBounded(page, READS_AT_ONCE, async ({ id }) => {
      const usage = await quarantine.readUsage(id);
      if (usage.bytes > 0) found.push({ organization: id, ...usage });
    });
  }
  return found;
}
