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

/** A job only says of which channel it is: what is to be done is read when it runs. */
export interface PollJob {
  readonly channel: number;
  /** Since when it has stood in line; absent: it has not. */
  readonly sinceMs?: number;
}

export type PollQueue = Omit<JobQueue<PollJob>, "findFirst">;

/** How many polls may be under way at once, over all workers. */
export interface PollLimits {
  readonly perOrigin: number;
  readonly perOrganization: number;
}

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
  readonly reconcileEveryMs: number;
  /** How long the end of this worker waits for polls under way before it ends them. */
  readonly graceMs: number;
}

/** The dependencies with their defaults, and the sources to be polled, by channel number. */
export interface PollsContext extends Omit<Required<PollsDeps>, "timing">, PollsTiming {
  readonly targets: ReadonlyMap<number, PollTarget>;
}

/** A source that should be polled, with what its schedule and its limits are. */
export interface PollTarget {
  readonly source: DesiredSource;
  readonly polled: PolledSource;
  readonly plan: JobPlan;
  /** Undefined where its polls come at fixed times. */
  readonly spacing: RunSpacing | undefined;
  /** Names the plan too: a schedule of that id is in force, on whichever worker it was set. */
  readonly scheduleId: string;
  /** First the source's own: it is polled by one at a time. */
  readonly places: readonly Semaphore[];
}

/** @throws Error on a schedule that cannot be read, or never comes. */
export function createPollTarget(
  source: DesiredSource,
  polled: PolledSource,
  { limits, nowMs }: { readonly limits: PollLimits; readonly nowMs: number },
): PollTarget {
  const { identity, settings } = source;
  const { number, organizationId } = identity;
  const schedule = polled.schedule(settings);
  const plan = toJobPlan(schedule, number);
  if (nextTimeMs(plan, nowMs) === undefined) throw new Error("the schedule has no next time");
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
 * Adds a poll beside the plan. There is one of a source at a time: it comes at the earliest time asked for. False where that one is
 * just being handled.
 */
export const addPoll = (queue: PollQueue, channel: number, delayMs: number): Promise<boolean> =>
  queue.add({ id: `again.${channel}`, data: { channel }, delayMs });

/** A job that gets in line is a worker's for some milliseconds. */
const TURN_TRIES = 5;
const TURN_RETRY_MS = 100;

/**
 * A slot is kept for this one, for a moment: it begins before all others. The worker that has just asked for it may still have its job;
 * false where it keeps it: it is polled then, or looks again by itself.
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
