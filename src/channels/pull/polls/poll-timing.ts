import { createHash } from "node:crypto";
import { gapMs, type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import type { RunSpacing } from "../../../bus/sources/source-positions.ts";
import type { PollSchedule } from "../../source.ts";
import { SLOW_RETRY_MS } from "../source-end.ts";

/** Maximum random delay of a cron time, because a user who sets "3:00" expects a poll close to that time. */
const MAX_CRON_SPREAD_MS = 60_000;
/** Wait after the first failure, in ms. Half the poll interval applies instead if it is shorter. */
const FIRST_WAIT_MS = 30_000;
const MIN_WAIT_MS = 1_000;
const MIN_EVERY_MS = 100;
/** Maximum wait after failures, as a multiple of the poll interval. The result is limited to between one minute and one hour. */
const MAX_WAIT_GAPS = 8;
const MAX_WAIT_MS = 3_600_000;
const ALWAYS_ALLOWED_WAIT_MS = 60_000;

/** Minimum time from the start of a failed poll to the next attempt. A shorter poll interval takes precedence. */
const RETRY_MS = 30_000;

/**
 * Converts a schedule to a plan for the job queue. Jitter lengthens each interval by a different random amount. Cron times are only
 * delayed: half of the jitter is constant per channel, and half is random each time.
 */
export function toJobPlan(schedule: PollSchedule, channelNumber: number): JobPlan {
  if ("everySeconds" in schedule) {
    const intervalMs = toIntervalMs(schedule);
    const jitterMs = Math.floor((schedule.jitter * intervalMs) / 2);
    return { everyMs: intervalMs + jitterMs, offsetMs: 0, jitterMs };
  }
  const { cron, timezone, jitter } = schedule;
  const exact = { cron, timezone, offsetMs: 0, jitterMs: 0 };
  const spreadMs = Math.min(jitter * gapMs(exact, 0), MAX_CRON_SPREAD_MS);
  const offsetMs = Math.floor((computeShare(channelNumber) * spreadMs) / 2);
  return { ...exact, offsetMs, jitterMs: Math.floor(spreadMs / 2) };
}

/** Returns a plan whose intervals are counted from the given time. Cron plans do not change. */
export const planFrom = (plan: JobPlan, atMs: number): JobPlan =>
  "everyMs" in plan ? { ...plan, offsetMs: Math.ceil(atMs) % plan.everyMs } : plan;

/** Returns the minimum time between two polls, or `undefined` for a cron schedule. */
export function toRunSpacing(schedule: PollSchedule): RunSpacing | undefined {
  if (!("everySeconds" in schedule)) return undefined;
  const intervalMs = toIntervalMs(schedule);
  return { intervalMs, retryMs: Math.min(intervalMs, RETRY_MS) };
}

const toIntervalMs = ({ everySeconds }: { readonly everySeconds: number }): number =>
  Math.max(everySeconds * 1_000, MIN_EVERY_MS);

/**
 * Returns how long to wait after a failure, in ms.
 *
 * @param failures number of earlier failures in a row, without this one
 * @param random a number between 0 and 1
 */
export function failureWaitMs(failures: number, plan: JobPlan, nowMs: number, random: number): number {
  const gap = gapMs(plan, nowMs);
  const first = Math.max(Math.min(FIRST_WAIT_MS, gap / 2), MIN_WAIT_MS);
  return Math.round(Math.min(first * 2 ** Math.min(failures, 20), longestWaitMs(gap)) * (0.75 + random / 2));
}

/** Returns the latest time at which a source can be due, including waits after failures. Excludes waits that the server requested. */
export function latestDueMs(plan: JobPlan, nowMs: number): number {
  if (!("everyMs" in plan)) return nextTimeMs(plan, nowMs) ?? Number.POSITIVE_INFINITY;
  return nowMs + plan.everyMs + plan.jitterMs + Math.max(longestWaitMs(plan.everyMs), 2 * SLOW_RETRY_MS);
}

const longestWaitMs = (gap: number): number =>
  Math.min(Math.max(MAX_WAIT_GAPS * gap, ALWAYS_ALLOWED_WAIT_MS), MAX_WAIT_MS);

export interface NextPoll {
  readonly atMs: number;
  /** False if the schedule already includes a poll at that time. */
  readonly isExtra: boolean;
}

/**
 * Returns the next poll after a wait: the next scheduled time, unless that would more than double the wait. In that case, returns an
 * additional poll. A failed daily poll is therefore not a whole day late, and a poll that fails every minute keeps its schedule.
 */
export function nextPoll(plan: JobPlan, nowMs: number, notBeforeMs: number): NextPoll {
  const plannedMs = nextTimeMs(plan, Math.max(nowMs, notBeforeMs)) ?? Number.POSITIVE_INFINITY;
  const waitMs = Math.max(notBeforeMs - nowMs, 0);
  return plannedMs - notBeforeMs > waitMs
    ? { atMs: nowMs + waitMs, isExtra: true }
    : { atMs: plannedMs, isExtra: false };
}

/** Returns a number between 0 and 1 that never changes for a channel and is evenly distributed over all channels. */
const computeShare = (channelNumber: number): number =>
  createHash("sha256").update(String(channelNumber)).digest().readUInt32BE(0) / 2 ** 32;
