import { createHash } from "node:crypto";
import { parseJson } from "../../event/parse-json.ts";
import { parseCron } from "../../lib/cron.ts";

/**
 * Schedule of a repeated job: multiples of `everyMs` since the Unix epoch, or a cron expression (five fields, or six with leading
 * seconds) in an IANA timezone. Each time is shifted by `offsetMs` plus a jitter from 0 up to `jitterMs` (exclusive).
 *
 * The jitter is pseudo-random but deterministic, so that workers that set the same plan compute the same times.
 */
export type JobPlan = Repetition & { readonly offsetMs: number; readonly jitterMs: number };

type Repetition =
  | { readonly everyMs: number }
  | {
      readonly cron: string;
      readonly timezone: string;
    };

/**
 * Returns the first time of the schedule after `afterMs`. Returns `undefined` if there is none, as for February 30 (`0 0 30 2 *`).
 *
 * @throws Error on an invalid cron expression or timezone
 */
export function nextTimeMs(plan: JobPlan, afterMs: number): number | undefined {
  for (const baseMs of "everyMs" in plan ? intervalTimes(plan, afterMs) : cronTimes(plan, afterMs)) {
    const atMs = baseMs + plan.offsetMs + jitterAtMs(plan, baseMs);
    if (atMs > afterMs) return atMs;
  }
  return undefined;
}

/**
 * Returns the time in ms between the next two runs of the schedule, ignoring offset and jitter. Returns Infinity if there are fewer
 * than two.
 */
export function gapMs(plan: JobPlan, afterMs: number): number {
  if ("everyMs" in plan) return plan.everyMs;
  const plain = { ...plan, offsetMs: 0, jitterMs: 0 };
  const first = nextTimeMs(plain, afterMs);
  const second = first === undefined ? undefined : nextTimeMs(plain, first);
  return first === undefined || second === undefined ? Number.POSITIVE_INFINITY : second - first;
}

/** Equal plans give equal texts. */
export const formatPlan = (plan: JobPlan): string =>
  "everyMs" in plan
    ? JSON.stringify([plan.offsetMs, plan.jitterMs, plan.everyMs])
    : JSON.stringify([plan.offsetMs, plan.jitterMs, plan.cron, plan.timezone]);

export function parsePlan(text: string): JobPlan {
  const [offsetMs, jitterMs, repetition, timezone] = parseJson(text) as [
    number,
    number,
    number | string,
    string,
  ];
  return typeof repetition === "number"
    ? { offsetMs, jitterMs, everyMs: repetition }
    : { offsetMs, jitterMs, cron: repetition, timezone };
}

function* intervalTimes(plan: JobPlan & { readonly everyMs: number }, afterMs: number): Generator<number> {
  const { everyMs, offsetMs, jitterMs } = plan;
  let time = Math.floor((afterMs - offsetMs - jitterMs) / everyMs) * everyMs;
  for (;;) {
    yield time;
    time += everyMs;
  }
}

function* cronTimes(
  plan: JobPlan & { readonly cron: string; readonly timezone: string },
  afterMs: number,
): Generator<number> {
  const { cron, timezone, offsetMs, jitterMs } = plan;
  const currentDate = new Date(afterMs - offsetMs - jitterMs);
  const times = parseCron(cron, { tz: timezone, currentDate });
  for (;;) {
    let atMs: number;
    try {
      atMs = times.next().getTime();
    } catch {
      // The expression is valid, because `parse` above has accepted it. An error here means that it has no further time.
      return;
    }
    yield atMs;
  }
}

/** Returns a delay from 0 up to `jitterMs` for a scheduled time. The same schedule and time always get the same delay. */
function jitterAtMs(plan: JobPlan, baseMs: number): number {
  if (plan.jitterMs === 0) return 0;
  const digest = createHash("md5")
    .update(`${baseMs} ${formatPlan(plan)}`)
    .digest();
  return Math.floor((digest.readUInt32BE(0) / 2 ** 32) * plan.jitterMs);
}
