import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import type { QuarantineStore } from "../bus/quarantine/quarantine.ts";
import {
  type RetainedTopic,
  type RetentionSweeper,
  startRetentionSweeper,
} from "../bus/retention/retention.ts";
import { createFindAtRisk } from "../bus/retention/retention-risk.ts";
import type { Topics } from "../bus/topics/topics.ts";
import type { Queryable } from "../data/database.ts";
import { expireDeadLetters } from "../data/dead-letters.ts";
import { claimLease, releaseLease } from "../data/leases.ts";
import { settleRemovals } from "../data/removals.ts";
import type { TopicRow } from "../data/tables.ts";
import { pageTopics } from "../data/topics.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import { clearRemoval } from "./clear-removal.ts";
import { expireQuarantine } from "./expire-quarantine.ts";
import { forgetTopic } from "./forget-topic.ts";
import { startRetentionWatch } from "./retention-watch.ts";

export interface HousekeeperDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly topics: Topics;
  readonly quarantine: Pick<QuarantineStore, "purge" | "expire">;
  readonly clock: Clock;
  readonly log: Log;
  /** False: never takes the lease. What it appends itself it trims, and its own deletions it clears away, all the same. */
  readonly takesTurns?: boolean;
  readonly timing?: Partial<HousekeeperTiming>;
}

export interface HousekeeperTiming {
  /** Between looks for removals. */
  readonly beatEveryMs: number;
  /** How long a gateway that died keeps the others from the work. */
  readonly leaseMs: number;
  readonly sweepEveryMs: number;
  readonly expireEveryMs: number;
  /** Between looks for unread events that retention is about to take. */
  readonly watchEveryMs: number;
  /**
   * How long a topic must have been retired before its row and its empty stream may go: longer than a gateway that cannot
   * read changes goes on publishing (ten minutes).
   */
  readonly retiredForMs: number;
}

/** Clears away what is over. Disposal waits for what is under way and leaves the work to others. */
export interface Housekeeper extends AsyncDisposable {
  /** Carries out what deletions have left to be removed, without waiting for the beat or for long. Never throws. */
  readonly settleNow: () => Promise<void>;
  /** Tells of an event appended: a busy topic is trimmed by the gateway that fills it, between the sweeps. */
  readonly noteAppended: RetentionSweeper["noteAppended"];
  /** Subscriptions that are about to lose unread events to retention, as far as this gateway has the turn. */
  readonly atRisk: () => number;
}

const TIMING: HousekeeperTiming = {
  beatEveryMs: 1_000,
  leaseMs: 15_000,
  sweepEveryMs: 30_000,
  expireEveryMs: 300_000,
  watchEveryMs: 30_000,
  retiredForMs: 900_000,
};
const LEASE = "housekeeper";
const PAGE = 500;
/** How long the answer to a deletion waits for its removals, which are not lost if it waits no longer. */
const SETTLE_WAIT_MS = 2_000;

/**
 * Of the gateways that take turns one works: whoever holds the lease trims idle topics, forgets retired ones that are empty,
 * carries out removals, lets old quarantine and dead letters go, and watches unread events. Two at once, while a lease passes on, do no harm.
 */
export function startHousekeeper(deps: HousekeeperDeps): Housekeeper {
  const { db, redis, log, clock, topics, quarantine, takesTurns = true } = deps;
  const timing = { ...TIMING, ...deps.timing };
  const claim = { name: LEASE, holder: randomUUID(), ttlMs: timing.leaseMs };
  const stopping = new AbortController();
  const { signal } = stopping;
  let heldUntilMs = 0;
  let claimedAtMs = Number.NEGATIVE_INFINITY;
  let expiredAtMs = Number.NEGATIVE_INFINITY;
  const failing = new Set<string>();

  const isHolder = (): boolean => !signal.aborted && performance.now() < heldUntilMs;

  /** Topics of the sweep under way that may go once they are empty. */
  const retired = new Set<string>();

  const sweeper = startRetentionSweeper({
    redis,
    log,
    intervalMs: timing.sweepEveryMs,
    topics: allTopics,
    onSwept: async (topic, left) => {
      if (left > 0 || !retired.has(topic)) return;
      await forgetTopic({ db, topics }, topic, new Date(clock() - timing.retiredForMs));
    },
  });

  const watch = startRetentionWatch({
    ...{ db, log, isHolder, everyMs: timing.watchEveryMs },
    pages: topicPages,
    findAtRisk: createFindAtRisk({ redis }),
  });

  async function* topicPages(): AsyncGenerator<readonly TopicRow[]> {
    let after = "";
    while (isHolder()) {
      const page = await pageTopics(db, after, PAGE);
      yield page;
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.topic;
    }
  }

  async function* allTopics(): AsyncGenerator<RetainedTopic> {
    retired.clear();
    for await (const page of topicPages()) {
      for (const { topic, maxAgeSeconds, maxEntries, maxBytes, retiredAt } of page) {
        if (!isHolder()) return;
        if (retiredAt && retiredAt.getTime() < clock() - timing.retiredForMs) retired.add(topic);
        yield { topic, maxAgeSeconds, maxEntries, maxBytes };
      }
    }
  }

  async function renew(): Promise<void> {
    const nowMs = performance.now();
    if (nowMs - claimedAtMs < timing.leaseMs / 3) return;
    claimedAtMs = nowMs;
    const isOurs = await claimLease(db, claim);
    heldUntilMs = isOurs ? nowMs + timing.leaseMs : 0;
  }

  async function attempt(what: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
      if (failing.delete(what)) log.info({ work: what }, "housekeeping goes on");
    } catch (error) {
      if (signal.aborted || failing.has(what)) return;
      failing.add(what);
      log.warn({ err: error, work: what }, "housekeeping has to wait");
    }
  }

  const settle = (): Promise<void> =>
    attempt("removals", () => settleRemovals(db, (removal) => clearRemoval(deps, removal), { signal }));

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await attempt("lease", renew);
      if (isHolder()) {
        await settle();
        if (performance.now() - expiredAtMs > timing.expireEveryMs) {
          expiredAtMs = performance.now();
          await attempt("quarantine", () => expireQuarantine({ db, quarantine }, signal));
          await attempt("dead letters", () => expireDeadLetters(db, clock(), { signal }));
        }
      }
      await delay(timing.beatEveryMs, undefined, { signal }).catch(() => {});
    }
  }

  const running = takesTurns ? run() : undefined;
  return {
    async settleNow() {
      const waited = new AbortController();
      await Promise.race([
        settle(),
        delay(SETTLE_WAIT_MS, undefined, { signal: waited.signal }).catch(() => {}),
      ]);
      waited.abort();
    },
    noteAppended: (topic, bytes, maxBytes) => sweeper.noteAppended(topic, bytes, maxBytes),
    atRisk: watch.atRisk,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all([sweeper[Symbol.asyncDispose](), watch[Symbol.asyncDispose]()]);
      if (!running) return;
      await running;
      await releaseLease(db, claim).catch((error: unknown) => {
        log.warn({ err: error }, "the housekeeper's lease is left to run out");
      });
    },
  };
}
