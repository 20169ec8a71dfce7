import { computeShard, type ShardLeases } from "../../bus/sources/shard-leases.ts";
import type { SourceState } from "../../bus/sources/source-states.ts";
import { type ChangeFeed, MAX_STALENESS_MS } from "../../data/changes.ts";
import { channelFacts } from "../../event/channel.ts";
import type { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import { endsWithin } from "../../lib/sleep.ts";
import { FairLimiter } from "../../limits/fairness.ts";
import type { Log } from "../../log.ts";
import type { Polls } from "./polls/polls.ts";
import { createSourceList, type SourceListDeps, type SourceSnapshot } from "./source-list.ts";
import type { SourceRuns } from "./source-runs.ts";
import { type ShardTiming, startShards } from "./streams/shards.ts";
import { StreamRunner } from "./streams/stream-runner.ts";
import { createStreamRunners } from "./streams/stream-runners.ts";

export interface SupervisorDeps extends SourceListDeps {
  readonly changes: Pick<ChangeFeed, "subscribe" | "stalenessMs">;
  readonly leases: ShardLeases;
  readonly runs: SourceRuns;
  readonly polls: Polls;
  /** Name of this worker process. It gets a new name after a restart. */
  readonly worker: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
  readonly timing?: Partial<SupervisorTiming & ShardTiming>;
}

export interface SupervisorTiming {
  /** Interval between checks of all sources. A change to a channel triggers a check immediately. */
  readonly checkEveryMs: number;
  /** Minimum time between two checks, even if many channels change. */
  readonly minCheckGapMs: number;
  /** How long to wait for the sources of a released shard to stop. After that, the next worker blocks their writes. */
  readonly graceMs: number;
}

/** Starts and stops the sources on this worker. Disposal stops the sources and lets other workers take over. */
export interface Supervisor extends AsyncDisposable {
  /** Counts the sources of this worker by state. Each source belongs to exactly one worker, so the counts of all workers can be added. */
  readonly countStates: () => ReadonlyMap<SourceState, number>;
  readonly shards: () => ReadonlySet<number>;
  readonly workers: () => number;
}

const TIMING: SupervisorTiming = { checkEveryMs: 30_000, minCheckGapMs: 200, graceMs: 1_500 };
/** Maximum number of streams that connect at the same time. Without it, a restart would open thousands of connections at once. */
const STARTS_AT_ONCE = 64;
const RETRY: Backoff = { initialMs: 1_000, maxMs: 1_000, factor: 1, jitter: 0 };
const NO_SOURCES: SourceSnapshot = { all: [], streams: new Map(), polled: [] };

/** Starts and stops sources until the running sources match the database. A stream runs only on the worker that owns it. */
export function startSupervisor(deps: SupervisorDeps): Supervisor {
  const { runtimes, runs, polls, worker, changes, clock, log, random = Math.random } = deps;
  const { checkEveryMs, minCheckGapMs, graceMs } = { ...TIMING, ...deps.timing };
  const find = createSourceList(deps);
  const starts = new FairLimiter(STARTS_AT_ONCE);
  const runners = createStreamRunners((row) => {
    const stream = runtimes.get(row.kind)?.stream;
    if (!stream) throw new Error(`channels of kind ${row.kind} are not streams`);
    return new StreamRunner(row.number, {
      runs,
      stream,
      owner: worker,
      starts,
      clock,
      random,
      log: log.child(channelFacts(row)),
    });
  });
  let found = NO_SOURCES;
  let held: ReadonlySet<number> = new Set();

  function reconcile(): void {
    const ours = [...found.streams].filter(([number]) => held.has(computeShard(number)));
    runners.reconcile(new Map(changes.stalenessMs() > MAX_STALENESS_MS ? [] : ours));
  }

  const shards = startShards({
    ...deps,
    async vacate(shards) {
      await endsWithin(graceMs, runners.ended(shards));
    },
    onHeld(now) {
      held = now;
      reconcile();
    },
  });

  async function check(signal: AbortSignal): Promise<void> {
    try {
      const next = await find();
      if (signal.aborted) return;
      found = next;
      polls.sync(found.polled);
    } finally {
      if (!signal.aborted) reconcile();
    }
  }

  const loop = startLoop({
    step: check,
    everyMs: checkEveryMs,
    gapMs: minCheckGapMs,
    retry: RETRY,
    random,
    onFailing: (err) => log.warn({ event: "supervisor.failing", err }, "sources cannot be listed"),
    onRecovered: () => log.info({ event: "supervisor.recovered" }, "sources are listed again"),
  });

  /** Restarts the stream of a changed channel, because a run keeps the settings and credentials from its start. */
  function restart(channelNumber: number): void {
    runners.restart(channelNumber);
    polls.requestPoll(channelNumber);
  }

  changes.subscribe({
    onChange({ kind, key }) {
      switch (kind) {
        case "source":
          return restart(Number(key));
        case "connection":
          for (const { number, connectionId } of found.all) if (connectionId === key) restart(number);
          return loop.wake();
        case "channel":
        case "subscription":
          return loop.wake();
        default:
      }
    },
    onReset: loop.wake,
  });
  return {
    countStates() {
      const counts = new Map<SourceState, number>();
      for (const row of found.all) {
        if (!held.has(computeShard(row.number))) continue;
        const state = findChannelState(row.state) ?? runners.state(row.number) ?? "waiting";
        counts.set(state, (counts.get(state) ?? 0) + 1);
      }
      return counts;
    },
    shards: shards.held,
    workers: shards.workers,
    async [Symbol.asyncDispose]() {
      await Promise.all([loop[Symbol.asyncDispose](), shards[Symbol.asyncDispose]()]);
    },
  };
}

/**
 * Returns the source's state if the channel's state determines it. Otherwise returns `undefined`, because the current run determines it.
 */
function findChannelState(state: SourceSnapshot["all"][number]["state"]): SourceState | undefined {
  return state === "paused" || state === "error" || state === "needsReauth" ? state : undefined;
}
