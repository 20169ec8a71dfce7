import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import {
  ensureGroups,
  removeSubscription,
  type SubscriptionGroups,
} from "../bus/groups/subscription-groups.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Queryable } from "../data/database.ts";
import {
  type CoveredTopic,
  findSubscriptionStarts,
  listAppsOfChannels,
  listCoverage,
  pageSubscriptions,
  type SubscriptionStart,
} from "../data/subscriptions/subscriptions.ts";
import type { Clock } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import { startLoop } from "../lib/loop.ts";
import { inPages } from "../lib/pages.ts";
import type { Log } from "../log.ts";
import { undoUncovered } from "./undo-uncovered.ts";

export interface GroupReconcilerDeps {
  readonly db: Queryable;
  readonly changes: ChangeSubscriptions;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly log: Log;
  /** Between looks at one group after the other; default 1,000. */
  readonly tickMs?: number;
  /** Between looks at all of them; default 60,000. */
  readonly sweepEveryMs?: number;
}

/** Keeps consumer groups and topic sets on Redis as the database has subscriptions. Disposal waits for the work under way. */
export type GroupReconciler = AsyncDisposable;

/** More changes than this at once are one look at everything. */
const MAX_PENDING = 1_000;
const PAGE = 50;
/** A group that is made so long after it should have been there was missing, and not just new. */
const LATE_MS = 10_000;

/**
 * Starts at once with all subscriptions, in the background: Redis may be away. From then on it goes by changes, and does everything
 * anew when Redis comes back, when a group that was there is missing (an emptied Redis), and on a slow tick. All of it may be done
 * twice, by several gateways at once.
 */
export function startGroupReconciler(deps: GroupReconcilerDeps): GroupReconciler {
  const { redis, log, tickMs = 1_000, sweepEveryMs = 60_000 } = deps;
  const reconciler = createReconciler(deps);
  const channels = new Set<number>();
  const subscriptions = new Set<string>();
  let everything = true;
  let sweptAtMs = 0;

  async function tick(signal: AbortSignal): Promise<void> {
    if (!redis.state().ready) {
      // It may come back empty.
      everything = true;
      return;
    }
    if (performance.now() - sweptAtMs > sweepEveryMs || !(await reconciler.isIntact())) everything = true;
    const isSweep = everything;
    const changed = { channels: [...channels], subscriptions: [...subscriptions] };
    everything = false;
    channels.clear();
    subscriptions.clear();
    if (!isSweep) return reconciler.ensureChanged(changed, signal);
    await reconciler.ensureAll(signal);
    sweptAtMs = performance.now();
  }

  const loop = startLoop({
    everyMs: tickMs,
    step: (signal) =>
      tick(signal).catch((error: unknown) => {
        everything = true;
        throw error;
      }),
    onFailing: (err) =>
      log.warn({ event: "group_reconciler.failing", err }, "consumer groups cannot be reconciled"),
    onRecovered: () =>
      log.info({ event: "group_reconciler.recovered" }, "consumer groups are reconciled again"),
  });
  deps.changes.subscribe({
    onChange({ kind, key }) {
      if (kind === "channel") channels.add(Number(key));
      else if (kind === "subscription") subscriptions.add(key);
      else return;
      if (channels.size + subscriptions.size > MAX_PENDING) everything = true;
      loop.wake();
    },
    onReset() {
      everything = true;
      loop.wake();
    },
  });
  return loop;
}

function createReconciler({ db, redis, groups, clock, log }: GroupReconcilerDeps) {
  /** One topic of each subscription whose groups stand, if it has any. */
  const samples = new Map<string, string>();
  let turn = samples.entries();
  /** Subscriptions whose groups could not be made for a reason of their own, each logged once. */
  const refused = new Set<string>();

  /** The topics whose group was made; undefined where something stands in the way of this subscription only. */
  async function tryEnsure(wanted: SubscriptionGroups): Promise<readonly string[] | undefined> {
    try {
      const made = await ensureGroups(groups, wanted);
      refused.delete(wanted.id);
      return made;
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      if (!refused.has(wanted.id)) {
        const facts = { event: "subscription.groups_refused", err: error, subscription: wanted.id };
        log.warn(facts, "the consumer groups of a subscription cannot be made");
      }
      refused.add(wanted.id);
      return undefined;
    }
  }

  async function ensurePage(subscriptions: readonly SubscriptionStart[], signal: AbortSignal): Promise<void> {
    const ids = subscriptions.map(({ id }) => id);
    const coverage = await listCoverage(db, ids);
    /** What is begun and fails may have made any of them. */
    const made = new Map<string, readonly string[]>();
    try {
      for (const subscription of subscriptions) {
        signal.throwIfAborted();
        const covered = coverage.get(subscription.id);
        // Deleted since it was listed: its set is still needed, to find its groups by.
        if (covered) await ensureOne(subscription, covered, made);
      }
    } finally {
      if (made.size > 0) await undoUncovered({ db, redis, groups }, made);
    }
    await undoDeleted(ids, coverage);
  }

  async function ensureOne(
    { id, startMs, state }: SubscriptionStart,
    covered: readonly CoveredTopic[],
    madeBy: Map<string, readonly string[]>,
  ): Promise<void> {
    const topics = covered.map(({ topic }) => topic);
    madeBy.set(id, topics);
    const made = await tryEnsure({ id, startMs, topics, isPaused: state === "paused" });
    if (made?.length === 0) madeBy.delete(id);
    else if (made) {
      madeBy.set(id, made);
      reportMissing(id, covered, new Set(made));
    }
    const [sample] = topics;
    if (sample === undefined || !made) samples.delete(id);
    else samples.set(id, sample);
  }

  /** A subscription deleted meanwhile may have been cleared away before its groups were made here. */
  async function undoDeleted(
    ids: readonly string[],
    coverage: ReadonlyMap<string, readonly CoveredTopic[]>,
  ): Promise<void> {
    const left = new Set((await findSubscriptionStarts(db, ids)).map(({ id }) => id));
    for (const id of ids) {
      if (left.has(id)) continue;
      samples.delete(id);
      refused.delete(id);
      const topics = (coverage.get(id) ?? []).map(({ topic }) => topic);
      await removeSubscription({ redis, groups }, id, topics);
    }
  }

  function reportMissing(id: string, covered: readonly CoveredTopic[], made: ReadonlySet<string>): void {
    const dueMs = clock() - LATE_MS;
    const missing = covered.filter(({ topic, since }) => made.has(topic) && since.getTime() < dueMs);
    if (missing.length === 0) return;
    const facts = { subscription: id, topics: missing.length, topic: missing[0]?.topic };
    log.warn(
      { event: "subscription.group_missing", ...facts },
      "a consumer group was missing; made anew at the subscription's start",
    );
  }

  async function ensurePaged(app: { readonly appId?: string }, signal: AbortSignal): Promise<void> {
    const pages = inPages("id", "", PAGE, (after, limit) => pageSubscriptions(db, { after, limit, ...app }));
    for await (const page of pages) await ensurePage(page, signal);
  }

  return {
    async ensureAll(signal: AbortSignal): Promise<void> {
      samples.clear();
      await ensurePaged({}, signal);
      turn = samples.entries();
    },
    async ensureChanged(
      changed: { readonly channels: readonly number[]; readonly subscriptions: readonly string[] },
      signal: AbortSignal,
    ): Promise<void> {
      for (const appId of await listAppsOfChannels(db, changed.channels))
        await ensurePaged({ appId }, signal);
      const found = await findSubscriptionStarts(db, changed.subscriptions);
      const left = new Set(found.map(({ id }) => id));
      for (const id of changed.subscriptions) if (!left.has(id)) samples.delete(id);
      for (let i = 0; i < found.length; i += PAGE) await ensurePage(found.slice(i, i + PAGE), signal);
    },
    /** False when a group that stood is missing. Looks at one at each call, in turn. */
    async isIntact(): Promise<boolean> {
      let next = turn.next();
      if (next.done) {
        turn = samples.entries();
        next = turn.next();
      }
      if (next.done) return true;
      const [id, topic] = next.value;
      if ((await groups.find(topic, id)) !== undefined) return true;
      // A deletion removes the group before its change comes in here.
      return (await findSubscriptionStarts(db, [id])).length === 0;
    },
  };
}
