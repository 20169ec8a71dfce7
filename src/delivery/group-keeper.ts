import { setTimeout as delay } from "node:timers/promises";
import type { RedisBus } from "../bus/connection/redis.ts";
import type { Groups } from "../bus/groups/groups.ts";
import type { Change } from "../data/changes.ts";
import type { Queryable } from "../data/database.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import { createPlacer } from "./group-reconciler.ts";

export interface GroupKeeperDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly log: Log;
  /** Between looks at one group after the other; default 1,000. */
  readonly beatEveryMs?: number;
  /** Between looks at all of them; default 60,000. */
  readonly sweepEveryMs?: number;
}

/** Keeps consumer groups and topic sets on Redis as the database has subscriptions. Disposal waits for what is under way. */
export interface GroupKeeper extends AsyncDisposable {
  /** To be told of what the change feed brings. */
  readonly noteChange: (change: Change) => void;
  readonly noteReset: () => void;
}

/** More changes than this at once are one look at everything. */
const MAX_PENDING = 1_000;

/**
 * Starts at once with all subscriptions, in the background: Redis may be away. From then on by changes, and everything anew when
 * Redis comes back, when a group that was there is missing (an emptied Redis), and on a slow beat. All that it does may be done
 * twice, by several gateways at once.
 */
export function startGroupKeeper(deps: GroupKeeperDeps): GroupKeeper {
  const { redis, log, beatEveryMs = 1_000, sweepEveryMs = 60_000 } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const placer = createPlacer(deps);
  const channels = new Set<number>();
  const subscriptions = new Set<string>();
  let everything = true;
  let sweptAtMs = 0;
  let wake: () => void = () => {};
  let failing = false;

  async function work(): Promise<void> {
    if (!redis.state().ready) {
      // What it holds when it is back is not known.
      everything = true;
      return;
    }
    if (performance.now() - sweptAtMs > sweepEveryMs || !(await placer.isIntact())) everything = true;
    if (everything) {
      everything = false;
      channels.clear();
      subscriptions.clear();
      await placer.placeAll(signal);
      sweptAtMs = performance.now();
      return;
    }
    const changed = { channels: [...channels], subscriptions: [...subscriptions] };
    channels.clear();
    subscriptions.clear();
    await placer.placeChanged(changed, signal);
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      try {
        await work();
        if (failing) log.info("consumer groups are kept again");
        failing = false;
      } catch (error) {
        everything = true;
        if (!failing && !signal.aborted) log.warn({ err: error }, "consumer groups cannot be kept");
        failing = true;
      }
      const next = new AbortController();
      // After a failure only the beat leads to the next try.
      await Promise.race([
        delay(beatEveryMs, undefined, { signal: AbortSignal.any([signal, next.signal]) }).catch(() => {}),
        ...(failing ? [] : [woken]),
      ]);
      next.abort();
    }
  }

  const running = run();
  return {
    noteChange({ kind, key }) {
      if (kind === "channel") channels.add(Number(key));
      else if (kind === "subscription") subscriptions.add(key);
      else return;
      if (channels.size + subscriptions.size > MAX_PENDING) everything = true;
      wake();
    },
    noteReset() {
      everything = true;
      wake();
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
    },
  };
}
