import { createHash } from "node:crypto";
import { gapMs, type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import type { RunSpacing } from "../../../bus/sources/source-positions.ts";
import type { PollSchedule } from "../../source.ts";
import { SLOW_RETRY_MS } from "../source-end.ts";

/** Cron times are spread less far than intervals: who says three o'clock means about three. */
const MAX_CRON_SPREAD_MS = 60_000;
/** After the first failure in a row, and at most half of what lies between two polls. */
const FIRST_WAIT_MS = 30_000;
const MIN_WAIT_MS = 1_000;
const MIN_EVERY_MS = 100;
/** No wait after failures is longer than so many times what lies between two polls, nor than an hour; but may be a minute. */
const MAX_WAIT_GAPS = 8;
const MAX_WAIT_MS = 3_600_000;
const ALWAYS_ALLOWED_WAIT_MS = 60_000;

/** No poll comes sooner after the beginning of one that failed, or was cut, unless the interval is shorter. */
const RETRY_MS = 30_000;

/**
 * A source's plan. Times of an interval are never nearer to each other than the interval: jitter only adds to it, a part that
 * differs each time. Cron times are only put off, by a part of their jitter that is the source's own and a part that differs each
 * time.
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

/** The plan with its interval counted from an instant; cron times stay as they are. */
export const planFrom = (plan: JobPlan, atMs: number): JobPlan =>
  "everyMs" in plan ? { ...plan, offsetMs: Math.ceil(atMs) % plan.everyMs } : plan;

/** How far the beginnings of polls are apart, at least; undefined where a cron expression says when. */
export function toRunSpacing(schedule: PollSchedule): RunSpacing | undefined {
  if (!("everySeconds" in schedule)) return undefined;
  const intervalMs = toIntervalMs(schedule);
  return { intervalMs, retryMs: Math.min(intervalMs, RETRY_MS) };
}

const toIntervalMs = ({ everySeconds }: { readonly everySeconds: number }): number =>
  Math.max(everySeconds * 1_000, MIN_EVERY_MS);

/** How long a source is left alone that failed now and `failures` times in a row before; `random` is from 0 to 1. */
export function failureWaitMs(failures: number, plan: JobPlan, nowMs: number, random: number): number {
  const gap = gapMs(plan, nowMs);
  const first = Math.max(Math.min(FIRST_WAIT_MS, gap / 2), MIN_WAIT_MS);
  return Math.round(Math.min(first * 2 ** Math.min(failures, 20), longestWaitMs(gap)) * (0.75 + random / 2));
}

/** When a source can be due at the latest that nobody has asked to wait: by its plan, or after as long as it is left alone for failures. */
export function latestDueMs(plan: JobPlan, nowMs: number): number {
  if (!("everyMs" in plan)) return nextTimeMs(plan, nowMs) ?? Number.POSITIVE_INFINITY;
  return nowMs + plan.everyMs + plan.jitterMs + Math.max(longestWaitMs(plan.everyMs), 2 * SLOW_RETRY_MS);
}

const longestWaitMs = (gap: number): number =>
  Math.min(Math.max(MAX_WAIT_GAPS * gap, ALWAYS_ALLOWED_WAIT_MS), MAX_WAIT_MS);

export interface NextPoll {
  readonly atMs: number;
  /** False where the plan brings it; else somebody must see to it. */
  readonly isExtra: boolean;
}

/**
 * When a source comes again that is left alone until `notBeforeMs`: by its plan, unless that takes more than twice as long. So a
 * daily poll that fails is not a day late, and one of each minute gets no second rhythm.
 */
export function nextPoll(plan: JobPlan, nowMs: number, notBeforeMs: number): NextPoll {
  const plannedMs = nextTimeMs(plan, Math.max(nowMs, notBeforeMs)) ?? Number.POSITIVE_INFINITY;
  const waitMs = Math.max(notBeforeMs - nowMs, 0);
  return plannedMs - notBeforeMs > waitMs
    ? { atMs: nowMs + waitMs, isExtra: true }
    : { atMs: plannedMs, isExtra: false };
}

/** From 0 to 1, the same for the same channel, evenly over channels. */
const computeShare = (channelNumber: number): number =>
  createHash("sha256").update(String(channelNumber)).digest().readUInt32BE(0) / 2 ** 32;
