import { formatWakeName } from "../../../bus/sources/wakes.ts";
import { channelFacts } from "../../../event/channel.ts";
import type { DesiredSource } from "../source-list.ts";
import { createPollJobs } from "./poll-jobs.ts";
import { type PollSchedules, startPollSchedules } from "./poll-schedules.ts";
import {
  createPollTarget,
  type PollsContext,
  type PollsDeps,
  type PollsTiming,
  type PollTarget,
} from "./poll-target.ts";

/** Polls sources on schedule. Disposal aborts polls in flight but keeps the schedules, because other workers use them. */
export interface Polls extends AsyncDisposable {
  /**
   * Replaces the list of sources to poll. An unchanged source must be the same object as before, because a new object restarts the source.
   */
  readonly sync: (sources: readonly DesiredSource[]) => void;
  /**
   * Requests an immediate poll that ignores the wait after failures. Called after the source's cursor was set manually or its connection
   * has changed.
   */
  readonly requestPoll: (channelNumber: number) => void;
}

const TIMING: PollsTiming = {
  deadlineMs: 300_000,
  wakeSpacingMs: 5_000,
  reconcileEveryMs: 30_000,
  graceMs: 2_000,
};

/**
 * Starts polling sources on schedule. Any worker can take a job, and a source has at most one poll at a time. Lost or superfluous jobs do
 * little harm. A lost job costs one poll, and a superfluous job finds its source busy or not due. No job runs before the first `sync`.
 */
export function startPolls(deps: PollsDeps): Polls {
  const targets = new Map<number, PollTarget>();
  /** Sources with an invalid schedule, so that each invalid source is logged only once. */
  let invalidSources = new Set<DesiredSource>();
  const targetsByWake = new Map<string, PollTarget>();
  const known = { targets, targetsByWake };
  const context: PollsContext = { random: Math.random, ...deps, ...TIMING, ...deps.timing, ...known };
  const { queue, runtimes, concurrency, limits, graceMs, clock, log } = context;
  const jobs = createPollJobs(context);
  let working: { readonly schedules: PollSchedules; readonly worker: AsyncDisposable } | undefined;

  function findTarget(source: DesiredSource): PollTarget | undefined {
    const before = targets.get(source.identity.number);
    if (before?.source === source) return before;
    const polled = runtimes.get(source.identity.kind)?.polled;
    if (polled === undefined || invalidSources.has(source)) return undefined;
    try {
      return createPollTarget(source, polled, { limits, nowMs: clock() });
    } catch (error) {
      log.error(
        { event: "source.schedule_invalid", err: error, ...channelFacts(source.identity) },
        "source is not polled, because its schedule is invalid",
      );
      invalidSources.add(source);
      return undefined;
    }
  }

  /** Replaces the sources to poll. Aborts the polls of sources that were removed or changed. */
  function replaceTargets(sources: readonly DesiredSource[]): void {
    const next = sources.flatMap((source) => findTarget(source) ?? []);
    invalidSources = new Set(sources.filter((source) => invalidSources.has(source)));
    const before = new Map(targets);
    targets.clear();
    targetsByWake.clear();
    for (const target of next) {
      targets.set(target.source.identity.number, target);
      targetsByWake.set(formatWakeName(target.source.identity), target);
    }
    for (const channel of before.keys()) if (!targets.has(channel)) jobs.end(channel);
    if (working === undefined) return;
    for (const [channel, target] of targets) {
      if (before.get(channel) === target) continue;
      jobs.skipBackoff(channel);
      if (!before.has(channel)) continue;
      jobs.end(channel);
      working.schedules.pollSoon(channel);
    }
  }

  return {
    sync(sources) {
      replaceTargets(sources);
      if (working === undefined) {
        working = {
          schedules: startPollSchedules(context),
          worker: queue.work(jobs.handle, { concurrency, graceMs }),
        };
      } else {
        working.schedules.wake();
      }
    },
    requestPoll(channel) {
      if (!targets.has(channel)) return;
      jobs.skipBackoff(channel);
      jobs.end(channel);
      working?.schedules.pollSoon(channel);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([working?.schedules[Symbol.asyncDispose](), working?.worker[Symbol.asyncDispose]()]);
    },
  };
}
