import { setTimeout as delay } from "node:timers/promises";
import { type ShardLeases, shardOf } from "../../bus/sources/shard-leases.ts";
import type { SourceState } from "../../bus/sources/source-states.ts";
import type { ChangeFeed } from "../../data/changes.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import { type ShardTiming, startShards } from "./shards.ts";
import type { SourceEngine } from "./source-engine.ts";
import { createSourceList, type SourceListDeps, type SourceLook } from "./source-list.ts";
import type { SourceRuns } from "./source-runs.ts";
import { createStartGate } from "./start-gate.ts";
import { startStreamRunner } from "./stream-runner.ts";
import { createStreamRunners } from "./stream-runners.ts";

export interface SupervisorDeps extends SourceListDeps {
  readonly changes: Pick<ChangeFeed, "subscribe" | "stalenessMs">;
  readonly leases: ShardLeases;
  readonly runs: SourceRuns;
  readonly polls: SourceEngine;
  /** This worker, unlike all others and all before. */
  readonly worker: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
  readonly timing?: Partial<SupervisorTiming & ShardTiming>;
}

export interface SupervisorTiming {
  /** Between looks at everything; changes are looked at once. */
  readonly lookEveryMs: number;
  /** Between two looks at least, however many changes come. */
  readonly lookGapMs: number;
  /** How long a shard that is given away waits for its runs to end. What still runs then is fenced by its successor. */
  readonly graceMs: number;
}

/** Runs the sources of this worker's shards. Disposal ends them and hands them over. */
export interface Supervisor extends AsyncDisposable {
  /** The sources in this worker's shards by their state: over all workers each counts once. */
  readonly countStates: () => ReadonlyMap<SourceState, number>;
  /** The shards of this worker. */
  readonly shards: () => ReadonlySet<number>;
  /** Live workers. */
  readonly workers: () => number;
}

const TIMING: SupervisorTiming = { lookEveryMs: 30_000, lookGapMs: 200, graceMs: 1_500 };
/** So many streams begin at a time; thousands at once would stand in each other's way, and at one server's door. */
const STARTS_AT_ONCE = 64;
const START_MOST_MS = 2_000;
/** After this long without news of changes nothing that is kept running is known to be wanted. */
const MAX_STALENESS_MS = 600_000;
const NOTHING: SourceLook = { all: [], streams: new Map(), polled: [] };

/**
 * Brings what runs in line with what should: sources that are kept open run on the worker that has their shard, one run of each
 * however many subscriptions and workers there are; those that are asked now and then are handed to `polls`. All of it is read from
 * the database, so that it comes back after any restart.
 */
export function startSupervisor(deps: SupervisorDeps): Supervisor {
  const { runtimes, runs, polls, worker, changes, clock, log, random = Math.random } = deps;
  const { lookEveryMs, lookGapMs, graceMs } = { ...TIMING, ...deps.timing };
  const stopping = new AbortController();
  const { signal } = stopping;
  const find = createSourceList(deps);
  const gate = createStartGate({ places: STARTS_AT_ONCE, mostMs: START_MOST_MS });
  const runners = createStreamRunners(({ number, kind }) => {
    const stream = runtimes.get(kind)?.stream;
    if (!stream) throw new Error(`channels of kind ${kind} are not streams`);
    return startStreamRunner(number, { runs, stream, owner: worker, admit: gate.admit, clock, random, log });
  });
  let found = NOTHING;
  let held: ReadonlySet<number> = new Set();
  let isDirty = true;
  let wake: () => void = () => {};

  function reconcile(): void {
    const ours = [...found.streams].filter(([number]) => held.has(shardOf(number)));
    runners.reconcile(new Map(changes.stalenessMs() > MAX_STALENESS_MS ? [] : ours));
  }

  async function vacate(shards: ReadonlySet<number>): Promise<void> {
    const waited = new AbortController();
    await Promise.race([
      runners.ended(shards),
      delay(graceMs, undefined, { signal: waited.signal }).catch(() => {}),
    ]);
    waited.abort();
  }

  const shards = startShards({
    ...deps,
    vacate,
    onHeld(now) {
      held = now;
      reconcile();
    },
  });

  async function look(): Promise<void> {
    isDirty = false;
    found = await find();
    if (signal.aborted) return;
    polls.sync(found.polled);
    reconcile();
  }

  function noteDirty(): void {
    isDirty = true;
    wake();
  }

  async function run(): Promise<void> {
    let isFailing = false;
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      try {
        await look();
        if (isFailing) log.info("sources are looked for again");
        isFailing = false;
      } catch (error) {
        isDirty = true;
        if (!isFailing && !signal.aborted) log.warn({ err: error }, "sources cannot be looked for");
        isFailing = true;
        reconcile();
      }
      await delay(isFailing ? 1_000 : lookGapMs, undefined, { signal }).catch(() => {});
      if (isDirty) continue;
      const next = new AbortController();
      await Promise.race([
        woken,
        delay(lookEveryMs, undefined, { signal: AbortSignal.any([signal, next.signal]) }).catch(() => {}),
      ]);
      next.abort();
    }
  }

  /** A run under way goes by what was there when it began. */
  function beginAnew(channelNumber: number): void {
    runners.restart(channelNumber);
    polls.requestPoll(channelNumber);
  }

  changes.subscribe({
    onChange({ kind, key }) {
      switch (kind) {
        case "source":
          return beginAnew(Number(key));
        case "connection":
          for (const { number, connectionId } of found.all) if (connectionId === key) beginAnew(number);
          return noteDirty();
        case "channel":
        case "subscription":
          return noteDirty();
        default:
      }
    },
    onReset: noteDirty,
  });
  const running = run();
  return {
    countStates() {
      const counts = new Map<SourceState, number>();
      for (const row of found.all) {
        if (!held.has(shardOf(row.number))) continue;
        const state = stateOf(row.state) ?? runners.state(row.number) ?? "waiting";
        counts.set(state, (counts.get(state) ?? 0) + 1);
      }
      return counts;
    },
    shards: shards.held,
    workers: shards.workers,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await Promise.all([running, shards[Symbol.asyncDispose]()]);
    },
  };
}

/** What of a channel's own state a source shows. */
function stateOf(state: SourceLook["all"][number]["state"]): SourceState | undefined {
  return state === "paused" || state === "error" || state === "needsReauth" ? state : undefined;
}
