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

/** Keeps scheduled sources going. Disposal ends the runs under way and leaves the schedules to the other workers. */
export interface Polls extends AsyncDisposable {
  /**
   * All the sources that should run now, whichever worker runs them; each call replaces the list before. A source whose
   * version is the one of before is the same object. Called on every worker, so that what it does must bear being done twice.
   */
  readonly sync: (sources: readonly DesiredSource[]) => void;
  /** The source's cursor was set by hand, or its connection has changed: its next run should not wait for an old reason. */
  readonly requestPoll: (channelNumber: number) => void;
}

const TIMING: PollsTiming = { deadlineMs: 300_000, reconcileEveryMs: 30_000, graceMs: 2_000 };

/**
 * Polls sources by their schedules, each by one worker at a time, whichever takes its job. A job is a requestPoll: one that is lost
 * costs a poll, and one too many finds its source busy or left alone. Works no jobs before it was told what should run.
 */
export function startPolls(deps: PollsDeps): Polls {
  const targets = new Map<number, PollTarget>();
  /** Sources with a schedule that cannot be read; told once. */
  let invalidSources = new Set<DesiredSource>();
  const context: PollsContext = { random: Math.random, ...deps, ...TIMING, ...deps.timing, targets };
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
        "source has a schedule that cannot be read",
      );
      invalidSources.add(source);
      return undefined;
    }
  }

  /** Sets what should be polled, and ends what no longer should, or not so. */
  function replaceTargets(sources: readonly DesiredSource[]): void {
    const next = sources.flatMap((source) => findTarget(source) ?? []);
    invalidSources = new Set(sources.filter((source) => invalidSources.has(source)));
    const before = new Map(targets);
    targets.clear();
    for (const target of next) targets.set(target.source.identity.number, target);
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
