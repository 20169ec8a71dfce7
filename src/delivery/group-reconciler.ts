import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import { type Placement, placeSubscription, removeSubscription } from "../bus/groups/subscription-groups.ts";
import type { Queryable } from "../data/database.ts";
import {
  type CoveredTopic,
  findSubscriptionStarts,
  listAppsOfChannels,
  listCoverage,
  pageSubscriptions,
  type SubscriptionStart,
} from "../data/subscriptions.ts";
import type { Clock } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { Log } from "../log.ts";

export interface PlacerDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly log: Log;
}

/** Brings subscriptions from the database onto the bus. */
export interface Placer {
  placeAll(signal: AbortSignal): Promise<void>;
  placeChanged(
    changed: { readonly channels: readonly number[]; readonly subscriptions: readonly string[] },
    signal: AbortSignal,
  ): Promise<void>;
  /** False when a group that was placed is missing. Looks at one at each call, in turn. */
  isIntact(): Promise<boolean>;
}

const PAGE = 50;
/** A group that is made so long after it should have been there was missing, and not just new. */
const LATE_MS = 10_000;

export function createPlacer(deps: PlacerDeps): Placer {
  const { db, redis, groups, clock, log } = deps;
  /** One topic of each subscription that was placed and has any. */
  const samples = new Map<string, string>();
  let turn = samples.entries();
  /** Subscriptions that could not be placed for a reason of their own, each told of once. */
  const refused = new Set<string>();

  /** The topics whose group was made; undefined where something stands in the way of this subscription only. */
  async function tryToPlace(placement: Placement): Promise<readonly string[] | undefined> {
    try {
      const made = await placeSubscription(groups, placement);
      refused.delete(placement.id);
      return made;
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
      if (!refused.has(placement.id)) {
        log.warn({ err: error, subscription: placement.id }, "a subscription cannot be placed");
      }
      refused.add(placement.id);
      return undefined;
    }
  }

  async function place(subscriptions: readonly SubscriptionStart[], signal: AbortSignal): Promise<void> {
    const ids = subscriptions.map(({ id }) => id);
    const coverage = await listCoverage(db, ids);
    for (const { id, startMs, state } of subscriptions) {
      signal.throwIfAborted();
      const covered = coverage.get(id);
      // Deleted since it was listed: its set is still needed, to find its groups by.
      if (!covered) continue;
      const topics = covered.map(({ topic }) => topic);
      const made = await tryToPlace({ id, startMs, topics, isPaused: state === "paused" });
      if (made) reportMissing(id, covered, new Set(made));
      const [sample] = topics;
      if (sample === undefined || !made) samples.delete(id);
      else samples.set(id, sample);
    }
    await undoDeleted(ids, coverage);
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
    log.warn(
      { subscription: id, topics: missing.length, topic: missing[0]?.topic },
      "a consumer group was missing; made anew at the subscription's start",
    );
  }

  async function placePaged(appId: string | undefined, signal: AbortSignal): Promise<void> {
    let after = "";
    for (;;) {
      const page = await pageSubscriptions(db, {
        after,
        limit: PAGE,
        ...(appId === undefined ? {} : { appId }),
      });
      await place(page, signal);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return;
      after = last.id;
    }
  }

  return {
    async placeAll(signal) {
      samples.clear();
      await placePaged(undefined, signal);
      turn = samples.entries();
    },
    async placeChanged({ channels, subscriptions }, signal) {
      for (const appId of await listAppsOfChannels(db, channels)) await placePaged(appId, signal);
      const found = await findSubscriptionStarts(db, subscriptions);
      const left = new Set(found.map(({ id }) => id));
      for (const id of subscriptions) if (!left.has(id)) samples.delete(id);
      for (let i = 0; i < found.length; i += PAGE) await place(found.slice(i, i + PAGE), signal);
    },
    async isIntact() {
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
