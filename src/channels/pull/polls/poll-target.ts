import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { formatPlan, type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import type { JobQueue } from "../../../bus/jobs/job-queue.ts";
import type { Semaphore, SlotReservation, Slots } from "../../../bus/limits/slots.ts";
import type { RunSpacing } from "../../../bus/sources/source-positions.ts";
import type { ChannelKindName } from "../../../event/channel.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../log.ts";
import type { Metrics } from "../../../metrics.ts";
import type { ChannelRuntime } from "../../kind.ts";
import type { PolledSource } from "../../source.ts";
import type { DesiredSource } from "../source-list.ts";
import type { SourceRuns } from "../source-runs.ts";
import { toJobPlan, toRunSpacing } from "./poll-timing.ts";

/** A job names only its channel. The settings are read when the job runs. */
export interface PollJob {
  readonly channel: number;
  /** When the job began to wait for a slot. `undefined` if it does not wait. */
  readonly sinceMs?: number;
}

export type PollQueue = Omit<JobQueue<PollJob>, "findFirst">;

/** Maximum number of concurrent polls over all workers. */
export interface PollLimits {
  readonly perOrigin: number;
  readonly perOrganization: number;
}

export interface PollsDeps {
  /** The caller that opened the queue disposes of it, after the polls. */
  readonly queue: PollQueue;
  readonly slots: Slots;
  readonly runs: SourceRuns;
  readonly runtimes: ReadonlyMap<ChannelKindName, Pick<ChannelRuntime, "polled">>;
  /** This worker's name, shown in a source's state. */
  readonly owner: string;
  /** Maximum number of concurrent polls on this worker. */
  readonly concurrency: number;
  readonly limits: PollLimits;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "polls" | "pollLagSeconds">;
  readonly random?: () => number;
  readonly timing?: Partial<PollsTiming>;
}

export interface PollsTiming {
  /** Maximum duration of one poll. */
  readonly deadlineMs: number;
  /** Interval between checks for lost and unknown schedules. */
  readonly reconcileEveryMs: number;
  /** How long a shutdown waits for polls in flight before it aborts them. */
  readonly graceMs: number;
}

/** The dependencies with defaults filled in, and the source to poll for each internal channel id. */
export interface PollsContext extends Omit<Required<PollsDeps>, "timing">, PollsTiming {
  readonly targets: ReadonlyMap<number, PollTarget>;
}

/** A source to poll, with its schedule and limits. */
export interface PollTarget {
  readonly source: DesiredSource;
  readonly polled: PolledSource;
  readonly plan: JobPlan;
  /** `undefined` when a cron expression sets the poll times. */
  readonly spacing: RunSpacing | undefined;
  /** Includes a hash of the plan. If a schedule with this id exists, its plan is current, whichever worker set it. */
  readonly scheduleId: string;
  /** Starts with the source's own semaphore, which allows one poll at a time. */
  readonly places: readonly Semaphore[];
}

/** @throws Error when the schedule is invalid or has no future time */
export function createPollTarget(
  source: DesiredSource,
  polled: PolledSource,
  { limits, nowMs }: { readonly limits: PollLimits; readonly nowMs: number },
): PollTarget {
  const { identity, settings } = source;
  const { number, organizationId } = identity;
  const schedule = polled.schedule(settings);
  const plan = toJobPlan(schedule, number);
  if (nextTimeMs(plan, nowMs) === undefined) throw new Error("the schedule has no future time");
  return {
    source,
    polled,
    plan,
    spacing: toRunSpacing(schedule),
    scheduleId: `${number}.${digestOf(formatPlan(plan))}`,
    places: [
      { key: `c.${number}`, limit: 1, canQueue: false },
      { key: `o.${digestOf(polled.origin(settings))}`, limit: limits.perOrigin, canQueue: true },
      { key: `g.${organizationId}`, limit: limits.perOrganization, canQueue: true },
    ],
  };
}

/**
 * Requests an extra poll, outside the schedule. Several requests for a source merge into one job at the earliest time. Resolves to false if
 * that job is being handled right now.
 */
export const addPoll = (queue: PollQueue, channel: number, delayMs: number): Promise<boolean> =>
  queue.add({ id: `again.${channel}`, data: { channel }, delayMs });

/** Attempts to add a job. When a job starts to wait for a slot, its worker still holds it for some milliseconds. */
const TURN_TRIES = 5;
const TURN_RETRY_MS = 100;

/**
 * Adds an urgent job for a source whose slot became free. The worker that queued the source may still hold its job. Resolves to false in
 * that case; that worker then polls or checks again.
 */
export async function addTurn(
  queue: Pick<PollQueue, "add">,
  { name, sinceMs }: SlotReservation,
): Promise<boolean> {
  const turn = { id: `again.${name}`, data: { channel: Number(name), sinceMs }, isUrgent: true };
  for (let tries = 1; !(await queue.add(turn)); tries++) {
    if (tries === TURN_TRIES) return false;
    await delay(TURN_RETRY_MS);
  }
  return true;
}

export const removePoll = (queue: PollQueue, channel: number): Promise<void> =>
  queue.remove(`again.${channel}`);

const digestOf = (text: string): string => createHash("sha256").update(text).digest("base64url").slice(0, 12);
