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
  /** Told of each event that this gateway appends: the gateway that fills a busy topic trims it, between the sweeps. */
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
  /** False: never takes the lease. It still trims the topics it fills and clears away its own deletions. */
  readonly takesTurns?: boolean;
  /** How many subscriptions and organizations are named in its figures; default 100. */
  readonly mostShown?: number;
  readonly timing?: Partial<HousekeeperTiming>;
}

export interface HousekeeperTiming {
  /** Between looks for removals. */
  readonly tickMs: number;
  /** How long a gateway that died keeps the others from the work. */
  readonly leaseMs: number;
  readonly sweepEveryMs: number;
  readonly expireEveryMs: number;
  /** Between looks for unread events that retention is about to take. */
  readonly watchEveryMs: number;
  /** Between looks at how much of their quarantine organizations use. */
  readonly usageEveryMs: number;
  /**
   * How long a topic must have been retired before its row and its empty stream may go: longer than a gateway that cannot
   * read changes goes on publishing (ten minutes).
   */
  readonly retiredForMs: number;
}

/** Trims, expires and removes. Disposal waits for the work under way and leaves the rest to others. */
export interface Housekeeper
  extends Pick<RetentionWatch, "atRisk" | "backlogs" | "standings">,
    AsyncDisposable {
  /** Carries out the removals that deletions have left, now, and waits for them a little. Never throws. */
  readonly settleNow: () => Promise<void>;
  /** Those nearest to their limits, and the rest as one; none where it is another's turn. */
  readonly topicUsage: () => readonly StorageUsage[];
  readonly quarantineUsage: () => readonly StorageUsage[];
  /** Whether this gateway has the turn. */
  readonly isHolder: () => boolean;
  /** What the topics of all organizations hold that have a limit; undefined where that is not known here. */
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
/** From so much of Redis' memory on sweeps come sooner: before it is full, those must wait who hold much of it. */
const HURRY_FRACTION = 0.75;
/** A gateway that ends leaves what it has found for so many sweeps. */
const LIMIT_SWEEPS = 4;
const LEAST_LIMIT_MS = 60_000;
const LEASE = "housekeeper";
const PAGE = 500;
/** How long the answer to a deletion waits for its removals, which are not lost if it waits no longer. */
const SETTLE_WAIT_MS = 2_000;

/**
 * Of the gateways that take turns one works: the holder of the lease trims idle topics, forgets retired ones that are empty,
 * carries out removals, expires quarantine, dead letters and the audit, and watches unread events. Two at once, while a lease passes on, do no harm.
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

  /** Topics of the sweep under way that may go once they are empty. */
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
    lookAtGroups: createInspectGroups({ redis }),
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
        log.info({ event: "housekeeping.recovered", duty: name }, "housekeeping goes on");
    } catch (err) {
      if (signal.aborted || failing.has(name)) return;
      failing.add(name);
      log.warn({ event: "housekeeping.failing", duty: name, err }, "housekeeping has to wait");
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
        onFailing: (err) => log.warn({ event: "housekeeper.failing", err }, "the lease cannot be renewed"),
        onRecovered: () => log.info({ event: "housekeeper.recovered" }, "the lease is renewed again"),
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
    standings: watch.standings,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all([sweeper, watch, loop].map((part) => part?.[Symbol.asyncDispose]()));
      if (!loop) return;
      await releaseLease(db, claim).catch((err: unknown) => {
        log.warn(
          { event: "housekeeper.lease_not_released", err },
          "the housekeeper's lease is left to run out",
        );
      });
    },
  };
}

/**
 * Forgets a topic that was retired before `before` and holds nothing any more: its row, and its stream with the groups on
 * it. The row is locked meanwhile: a channel that takes the topic up again waits, and begins with a new one.
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

/** Removes quarantined items past their keep, in every organization in turn. @throws UnavailableError */
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

/** Of every organization that holds anything. @throws UnavailableError */
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
