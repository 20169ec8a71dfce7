import { createHash } from "node:crypto";
import { CronExpressionParser } from "cron-parser";

/**
 * When a scheduled job comes, for ever: each `everyMs` since the Unix epoch, or by a cron expression (five fields, or six with
 * seconds in front) on the clock of an IANA timezone; in either case `offsetMs` later, and less than `jitterMs` more, which
 * differs from time to time. The jitter is no chance: each computation of a plan gives the same times, so that workers that set the
 * same plan do not push each other's jobs about.
 */
export type JobPlan = Repetition & { readonly offsetMs: number; readonly jitterMs: number };

type Repetition =
  | { readonly everyMs: number }
  | {
      readonly cron: string;
      readonly timezone: string;
    };

/**
 * The first time of the plan that is later than `afterMs`; undefined where there is none (`0 0 30 2 *`).
 *
 * @throws Error on a cron expression or a timezone that cannot be read.
 */
export function nextTimeMs(plan: JobPlan, afterMs: number): number | undefined {
  for (const baseMs of "everyMs" in plan ? beats(plan, afterMs) : cronTimes(plan, afterMs)) {
    const atMs = baseMs + plan.offsetMs + jitterAtMs(plan, baseMs);
    if (atMs > afterMs) return atMs;
  }
  return undefined;
}

/** How long one time of the plan is from the one after, by the next two; Infinity where there are no two. */
export function gapMs(plan: JobPlan, afterMs: number): number {
  if ("everyMs" in plan) return plan.everyMs;
  const plain = { ...plan, offsetMs: 0, jitterMs: 0 };
  const first = nextTimeMs(plain, afterMs);
  const second = first === undefined ? undefined : nextTimeMs(plain, first);
  return first === undefined || second === undefined ? Number.POSITIVE_INFINITY : second - first;
}

/** The plan as one line of text, equal for equal plans. */
export const formatPlan = (plan: JobPlan): string =>
  "everyMs" in plan
    ? JSON.stringify([plan.offsetMs, plan.jitterMs, plan.everyMs])
    : JSON.stringify([plan.offsetMs, plan.jitterMs, plan.cron, plan.timezone]);

/** Reads what `formatPlan` wrote. */
export function parsePlan(text: string): JobPlan {
  const [offsetMs, jitterMs, what, timezone] = JSON.parse(text) as [number, number, number | string, string];
  return typeof what === "number"
    ? { offsetMs, jitterMs, everyMs: what }
    : { offsetMs, jitterMs, cron: what, timezone };
}

function* beats(plan: JobPlan & { readonly everyMs: number }, afterMs: number): Generator<number> {
  const { everyMs, offsetMs, jitterMs } = plan;
  let beat = Math.floor((afterMs - offsetMs - jitterMs) / everyMs) * everyMs;
  for (;;) {
    yield beat;
    beat += everyMs;
  }
}

function* cronTimes(
  plan: JobPlan & { readonly cron: string; readonly timezone: string },
  afterMs: number,
): Generator<number> {
  const { cron, timezone, offsetMs, jitterMs } = plan;
  const currentDate = new Date(afterMs - offsetMs - jitterMs);
  const times = CronExpressionParser.parse(cron, { tz: timezone, currentDate });
  for (;;) {
    let atMs: number;
    try {
      atMs = times.next().getTime();
    } catch {
      // A throw here means that there is no such time; an expression that cannot be read has thrown before.
      return;
    }
    yield atMs;
  }
}

/** At least 0 and less than `jitterMs`; the same for the same plan and time. */
function jitterAtMs(plan: JobPlan, baseMs: number): number {
  if (plan.jitterMs === 0) return 0;
  const digest = createHash("md5")
    .update(`${baseMs} ${formatPlan(plan)}`)
    .digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * plan.jitterMs);
}
