import type { JobWorker } from "../../../bus/jobs/job-worker.ts";
import type { Slots } from "../../../bus/limits/slots.ts";
import { type ChannelKindName, channelFacts } from "../../../event/channel.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../log.ts";
import type { Metrics } from "../../../metrics.ts";
import type { ChannelRuntime } from "../../kind.ts";
import type { DesiredSource } from "../source-list.ts";
import type { SourceRuns } from "../source-runs.ts";
import { createPollJobs } from "./poll-jobs.ts";
import { type PollSchedules, startPollSchedules } from "./poll-schedules.ts";
import { type PollLimits, type PollQueue, type PollTarget, pollTargetOf } from "./poll-target.ts";

export interface PollsDeps {
  /** Its opener disposes of it, after the polls. */
  readonly queue: PollQueue;
  readonly slots: Slots;
  readonly runs: SourceRuns;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "polled">>;
  /** This worker's name, as a source's state shows it. */
  readonly owner: string;
  /** Polls under way here at once. */
  readonly concurrency: number;
  readonly limits: PollLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "polls" | "pollLagSeconds">;
  readonly random?: () => number;
  readonly timing?: Partial<PollsTiming>;
}

export interface PollsTiming {
  /** How long one poll may take. */
  readonly deadlineMs: number;
  /** Between looks for schedules that Redis has lost, or that nobody wants. */
  readonly auditEveryMs: number;
  /** How long the end of this worker waits for polls under way before it ends them. */
  readonly graceMs: number;
}

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

const TIMING: PollsTiming = { deadlineMs: 300_000, auditEveryMs: 30_000, graceMs: 2_000 };

/**
 * Polls sources by their schedules, each by one worker at a time, whichever takes its job. A job is a requestPoll: one that is lost
 * costs a poll, and one too many finds its source busy or left alone. Works no jobs before it was told what should run.
 */
export function startPolls(deps: PollsDeps): Polls {
  const { queue, runtimes, concurrency, limits, clock, log, random = Math.random } = deps;
  const { deadlineMs, auditEveryMs, graceMs } = { ...TIMING, ...deps.timing };
  const targets = new Map<number, PollTarget>();
  /** Sources with a schedule that cannot be read; told once. */
  let refused = new Set<DesiredSource>();
  const jobs = createPollJobs({ ...deps, targets, random, deadlineMs });
  let working: { readonly schedules: PollSchedules; readonly worker: JobWorker } | undefined;

  function targetOf(source: DesiredSource): PollTarget | undefined {
    const before = targets.get(source.identity.number);
    if (before?.source === source) return before;
    const polled = runtimes.get(source.identity.kind)?.polled;
    if (polled === undefined || refused.has(source)) return undefined;
    try {
      return pollTargetOf(source, polled, { limits, nowMs: clock() });
    } catch (error) {
      log.error(
        { event: "source.schedule_invalid", err: error, ...channelFacts(source.identity) },
        "source has a schedule that cannot be read",
      );
      refused.add(source);
      return undefined;
    }
  }

  /** Sets what should be polled, and ends what no longer should, or not so. */
  function replaceTargets(sources: readonly DesiredSource[]): void {
    const next = sources.flatMap((source) => targetOf(source) ?? []);
    refused = new Set(sources.filter((source) => refused.has(source)));
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
          schedules: startPollSchedules({ queue, targets, clock, log, random, auditEveryMs }),
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
