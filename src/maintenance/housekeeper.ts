import { randomUUID } from "node:crypto";
import type { RedisBus } from "../bus/connection/redis.ts";
import type { DeliveryRecords } from "../bus/deliveries/delivery-records.ts";
import type { Groups } from "../bus/groups/groups.ts";
import type { Appended } from "../bus/publish/publish.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import { type RetainedTopic, startRetentionSweeper } from "../bus/retention/retention.ts";
import { createInspectGroups } from "../bus/retention/retention-risk.ts";
import type { Topics } from "../bus/topics/topics.ts";
import { expireAudit } from "../data/accounts/audit-retention.ts";
import type { DefaultTopicBytes } from "../data/accounts/organization-limits.ts";
import { forgetRetiredTopic, pageTopics } from "../data/channels/topics.ts";
import type { Queryable } from "../data/database.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import { settleRemovals } from "../data/removals.ts";
import { expireDeadLetters } from "../data/subscriptions/dead-letters.ts";
import type { Clock } from "../lib/clock.ts";
import type { Listeners } from "../lib/listeners.ts";
import { startLoop } from "../lib/loop.ts";
import { mapBounded } from "../lib/map-bounded.ts";
import { inPages } from "../lib/pages.ts";
import { endsWithin } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import { clearRemoval } from "./clear-removal.ts";
import { type RetentionWatch, startRetentionWatch } from "./retention-watch.ts";
import { nearestLimits, type StorageUsage } from "./storage-usage.ts";
import { createTopicLimits, type TopicLimits, type TopicLimitsDeps } from "./topic-limits.ts";

export interface HousekeeperDeps {
  readonly db: Queryable;
  /** Reports each event that this gateway appends to a topic. Between sweeps, every gateway trims the topics to which it appends. */
  readonly appended: Pick<Listeners<Appended>, "subscribe">;
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
  /**
   * Whether this gateway may become the lease holder. If false, it only trims topics to which it appends and processes its own deletions.
   */
  readonly takesTurns?: boolean;
  /** Maximum number of subscriptions, and of organizations, that have their own metric series. Defaults to 100. */
  readonly mostShown?: number;
  readonly timing?: Partial<HousekeeperTiming>;
}

export interface HousekeeperTiming {
  /** Interval between checks for pending removals of Redis data, in milliseconds. */
  readonly tickMs: number;
  /** Duration of the lease in milliseconds. If the holder dies, another gateway takes over after this time. */
  readonly leaseMs: number;
  readonly sweepEveryMs: number;
  readonly expireEveryMs: number;
  /** Interval between checks for unread events that retention will trim soon, in milliseconds. */
  readonly watchEveryMs: number;
  /** Interval between measurements of the organizations' quarantine usage, in milliseconds. */
  readonly usageEveryMs: number;
  /**
   * Minimum time between retiring a topic and deleting its row and empty stream. Must exceed ten minutes, because a gateway without access
   * to the change feed may publish to the topic for that long.
   */
  readonly retiredForMs: number;
}

/** Trims topics, deletes expired data and processes removals. Disposal waits for work in flight and leaves the rest to other gateways. */
export interface Housekeeper
  extends Pick<RetentionWatch, "atRisk" | "backlogs" | "backlogsById">,
    AsyncDisposable {
  /** Processes pending removals now and waits up to two seconds for them. Never rejects. */
  readonly settleNow: () => Promise<void>;
  /** Topic storage of the organizations that are closest to their limits, and the total of all others. Empty on a gateway that does not do the housekeeping. */
  readonly topicUsage: () => readonly StorageUsage[];
  readonly quarantineUsage: () => readonly StorageUsage[];
  readonly isHolder: () => boolean;
  /** Topic storage of all organizations with a limit. `undefined` if this gateway has not measured it recently. */
  readonly topicHoldings: TopicLimits["holdings"];
}

const TIMING: HousekeeperTiming = {
  tickMs: 1_000,
  leaseMs: 15_000,
  sweepEveryMs: 30_000,
  expireEveryMs: 300_000,
  watchEveryMs: 30_000,
  usageEveryMs: 60_000,
  retiredForMs: 900_000,
};
/**
 * Fraction of Redis memory in use above which sweeps run more often, so that the largest organizations are limited before Redis is full.
 */
const HURRY_FRACTION = 0.75;
/**
 * Number of sweep intervals for which the list of organizations over their limit stays valid, so that it survives a change of the lease
 * holder.
 */
const LIMIT_SWEEPS = 4;
const LEAST_LIMIT_MS = 60_000;
const LEASE = "housekeeper";
const PAGE = 500;
/** Maximum time in milliseconds that the response to a deletion waits for the removal of Redis data. The removal continues afterwards. */
const SETTLE_WAIT_MS = 2_000;

/**
 * Starts the housekeeper. The lease holder trims topics, processes removals, watches unread events, and deletes expired quarantine items,
 * dead letters, audit entries and empty retired topics. While the lease moves, two gateways may safely do this at the same time.
 */
export function startHousekeeper(deps: HousekeeperDeps): Housekeeper {
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

  /** Topics of the current sweep that were retired long enough ago to be deleted if empty. */
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
    settleNow: async () => void (await endsWithin(SETTLE_WAIT_MS, settle())),
    atRisk: watch.atRisk,
    backlogs: watch.backlogs,
    topicUsage: () => (isHolder() ? limits.usage() : []),
    quarantineUsage: () => (isHolder() ? quarantineUsage : []),
    isHolder,
    topicHoldings: limits.holdings,
    backlogsById: watch.backlogsById,
    async [Symbol.asyncDispose]() {
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

/**
 * Deletes the stream, groups and row of an empty topic that was retired before `before`. Locks the row meanwhile, so that a channel that
 * takes over the topic waits and starts with a new stream.
 */
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
  for await (const page of organizationPages(db)) {
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
  for await (const page of organizationPages(db)) {
    signal.throwIfAborted();
    await mapBounded(page, READS_AT_ONCE, async ({ id }) => {
      const usage = await quarantine.readUsage(id);
      if (usage.bytes > 0) found.push({ organization: id, ...usage });
    });
  }
  return found;
}

function organizationPages(db: Queryable) {
  const organizations = db.selectFrom("organizations").select("id").orderBy("id");
  return inPages("id", "", PAGE, (after, limit) =>
    organizations.where("id", ">", after).limit(limit).execute(),
  );
}
