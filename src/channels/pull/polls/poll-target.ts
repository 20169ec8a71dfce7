import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { formatPlan, type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import type { JobQueue } from "../../../bus/jobs/job-queue.ts";
import type { Semaphore, SlotReservation, Slots } from "../../../bus/limits/slots.ts";
import type { RunSpacing } from "../../../bus/sources/source-positions.ts";
import { isWakeName, type WakeJob } from "../../../bus/sources/wakes.ts";
import type { ChannelKindName } from "../../../event/channel.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../log.ts";
import type { Metrics } from "../../../metrics.ts";
import type { ChannelRuntime } from "../../kind.ts";
import type { PolledSource } from "../../source.ts";
import type { DesiredSource } from "../source-list.ts";
import type { SourceRuns } from "../source-runs.ts";
import { toJobPlan, toRunSpacing } from "./poll-timing.ts";

/** Data of a poll job. It only names the channel, because the job reads the current settings when it runs. */
export type PollJob = ChannelJob | WakeJob;

export interface ChannelJob {
  readonly channel: number;
  /** When the job began to wait for a concurrency limit. `undefined` if it is not waiting. */
  readonly sinceMs?: number;
}

export type PollQueue = Omit<JobQueue<PollJob>, "findFirst" | "addWaiting" | "markKey">;

/** Concurrency limits of polls, counted across all workers. */
export interface PollLimits {
  readonly perOrigin: number;
  readonly perOrganization: number;
}

export interface PollsDeps {
  /** Queue of poll jobs. The caller closes it after all polls have ended. */
  readonly queue: PollQueue;
  readonly slots: Slots;
  readonly runs: SourceRuns;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "polled">>;
  readonly owner: string;
  /** Maximum number of concurrent polls on this worker. */
  readonly concurrency: number;
  readonly limits: PollLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "polls" | "pollLagSeconds" | "wakes">;
  readonly random?: () => number;
  readonly timing?: Partial<PollsTiming>;
}

export interface PollsTiming {
  readonly deadlineMs: number;
  /** Minimum time from the start of a poll to the start of a poll that a wake requested. A shorter poll interval takes precedence. */
  readonly wakeSpacingMs: number;
  /** Interval between searches for missing and unknown schedules. */
  readonly reconcileEveryMs: number;
  /** How long a shutdown waits for polls in flight before it aborts the polls. */
  readonly graceMs: number;
}

/** The dependencies with all defaults filled in, plus the sources to poll by internal channel id. */
export interface PollsContext extends Omit<Required<PollsDeps>, "timing">, PollsTiming {
  readonly targets: ReadonlyMap<number, PollTarget>;
  /** The same sources by the name under which their wakes wait. */
  readonly targetsByWake: ReadonlyMap<string, PollTarget>;
}

export interface PollTarget {
  readonly source: DesiredSource;
  readonly polled: PolledSource;
  readonly plan: JobPlan;
  /** Minimum time between polls. `undefined` if a cron expression sets the times. */
  readonly spacing: RunSpacing | undefined;
  /** Id of the schedule. It contains a hash of the timing, so that workers with the same settings always use the same schedule. */
  readonly scheduleId: string;
  /** Concurrency limits that a poll counts against. The first limit allows one poll per source. */
  readonly places: readonly Semaphore[];
}

/** @throws Error if the schedule is invalid or has no time in the future */
export function createPollTarget(
  source: DesiredSource,
  polled: PolledSource,
  { limits, nowMs }: { readonly limits: PollLimits; readonly nowMs: number },
): PollTarget {
  const { identity, config } = source;
  const { number, organizationId } = identity;
  const schedule = polled.schedule(config);
  const plan = toJobPlan(schedule, number);
  if (nextTimeMs(plan, nowMs) === undefined) throw new Error("the poll schedule has no future time");
  return {
    source,
    polled,
    plan,
    spacing: toRunSpacing(schedule),
    scheduleId: `${number}.${digestOf(formatPlan(plan))}`,
    places: [
      { key: `c.${number}`, limit: 1, canQueue: false },
      { key: `o.${digestOf(polled.origin(config))}`, limit: limits.perOrigin, canQueue: true },
      { key: `g.${organizationId}`, limit: limits.perOrganization, canQueue: true },
    ],
  };
}

/**
 * Adds an additional poll, outside the schedule. Several requests for a source become one job. Resolves to false if that job is already
 * running.
 */
export const addPoll = (queue: PollQueue, channel: number, delayMs: number): Promise<boolean> =>
  queue.add({ id: `again.${channel}`, data: { channel }, delayMs });

/** Number of attempts to add a job. The first attempt may fail while the previous worker still holds the job for some milliseconds. */
const TURN_TRIES = 5;
const TURN_RETRY_MS = 100;

/**
 * Starts the job of a source that was waiting for a limit slot, once the slot is free. Resolves to false if the worker that queued the
 * source still holds its job. That worker then polls the source or checks again.
 */
export async function addTurn(
  queue: Pick<PollQueue, "add" | "bringForward">,
  { name, sinceMs }: SlotReservation,
): Promise<boolean> {
  const turn = { id: `again.${name}`, data: { channel: Number(name), sinceMs }, isUrgent: true };
  const start = () => (isWakeName(name) ? queue.bringForward(name) : queue.add(turn));
  for (let tries = 1; !(await start()); tries++) {
    if (tries === TURN_TRIES) return false;
    await delay(TURN_RETRY_MS);
  }
  return true;
}

export const removePoll = (queue: PollQueue, channel: number): Promise<void> =>
  queue.remove(`again.${channel}`);

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 12);
