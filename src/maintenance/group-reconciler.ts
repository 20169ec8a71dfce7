import type { RedisBus } from "../bus/connection/redis.ts";
import { idBefore } from "../bus/entry-id.ts";
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
import { removeUncoveredGroups } from "./remove-uncovered-groups.ts";

export interface GroupReconcilerDeps {
  readonly db: Queryable;
  readonly changes: ChangeSubscriptions;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly log: Log;
  /** Interval at which one consumer group is checked, in ms. Defaults to 1,000. */
  readonly tickMs?: number;
  /** Interval at which all consumer groups are checked, in ms. Defaults to 60,000. */
  readonly sweepEveryMs?: number;
}

/** Creates and removes consumer groups in Redis until they match the subscriptions in the database. Disposal waits for work in flight. */
export type GroupReconciler = AsyncDisposable;

/** Maximum number of pending changes. If there are more, all subscriptions are checked instead of the changed ones. */
const MAX_PENDING = 1_000;
const PAGE = 50;
/** Time in ms after which a topic must have its consumer group. A group that is created later was lost before, which is reported. */
const LATE_MS = 10_000;

/**
 * Starts reconciling in the background, so that a Redis outage does not block startup. The first pass checks all subscriptions, later
 * passes only changed ones.
 *
 * A full pass also runs at regular intervals, when Redis is available again, and when an existing group is missing because Redis was
 * flushed. All steps are idempotent, so several gateways can run them concurrently.
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
      // Redis may have lost its data during the outage.
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
  /** One topic per subscription with existing consumer groups. `isIntact` checks whether Redis still has these groups. */
  const samples = new Map<string, string>();
  let turn = samples.entries();
  /** Subscriptions whose consumer groups could not be created although Redis was available, so that each is logged once. */
  const refused = new Set<string>();

  /** Creates the missing consumer groups of a subscription and returns their topics. Returns `undefined` if Redis rejects the groups. */
  async function tryEnsure(wanted: SubscriptionGroups): Promise<readonly string[] | undefined> {
    try {
      const made = await ensureGroups(groups, wanted);
      refused.delete(wanted.id);
      return made;
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      if (!refused.has(wanted.id)) {
        const facts = { event: "subscription.groups_refused", err: error, subscription: wanted.id };
        log.warn(facts, "the consumer groups of a subscription cannot be created");
      }
      refused.add(wanted.id);
      return undefined;
    }
  }

  async function ensurePage(subscriptions: readonly SubscriptionStart[], signal: AbortSignal): Promise<void> {
    const ids = subscriptions.map(({ id }) => id);
    const coverage = await listCoverage(db, ids);
    /** Topics that may have new consumer groups, by subscription. After a failure, these are all topics of the subscription. */
    const made = new Map<string, readonly string[]>();
    try {
      for (const subscription of subscriptions) {
        signal.throwIfAborted();
        const covered = coverage.get(subscription.id);
        // Skips subscriptions that were deleted meanwhile, because their removal needs the unchanged list of topics to find the groups.
        if (covered) await ensureOne(subscription, covered, made);
      }
    } finally {
      if (made.size > 0) await removeUncoveredGroups({ db, redis, groups }, made);
    }
    await undoDeleted(ids, coverage);
  }

  async function ensureOne(
    { id, startMs, agent, state }: SubscriptionStart,
    covered: readonly CoveredTopic[],
    madeBy: Map<string, readonly string[]>,
  ): Promise<void> {
    const topics = covered.map(({ topic }) => topic);
    madeBy.set(id, topics);
    const made = await tryEnsure({
      id,
      startId: agent?.start.after ?? idBefore(startMs),
      topics,
      isPaused: state === "paused",
    });
    if (made?.length === 0) madeBy.delete(id);
    else if (made) {
      madeBy.set(id, made);
      reportMissing(id, covered, new Set(made));
    }
    const [sample] = topics;
    if (sample === undefined || !made) samples.delete(id);
    else samples.set(id, sample);
  }

  /** Removes the new consumer groups of subscriptions that were deleted meanwhile, because their removal may already be complete. */
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
      "a consumer group was missing and was created again at the subscription's start",
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
    /** Checks one consumer group per call. Returns false if the group of an existing subscription is missing. */
    async isIntact(): Promise<boolean> {
      let next = turn.next();
      if (next.done) {
        turn = samples.entries();
        next = turn.next();
      }
      if (next.done) return true;
      const [id, topic] = next.value;
      if ((await groups.find(topic, id)) !== undefined) return true;
      // A missing group is correct if its subscription was deleted and this process has not been notified yet.
      return (await findSubscriptionStarts(db, [id])).length === 0;
    },
  };
}
