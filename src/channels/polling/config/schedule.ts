import { z } from "zod";
import { createIssueReporter, integer, text } from "../../../event/config-fields.ts";
import { parseCron } from "../../../lib/cron.ts";
import type { PollSchedule } from "../../source.ts";

/** Minimum time between two polls, for both intervals and cron schedules. */
const MIN_INTERVAL_SECONDS = 5;
/**
 * Number of times of a cron expression to compare with the minimum interval. The check covers at most one year from a fixed date, so that
 * its result never changes.
 */
const CHECKED_TIMES = 1000;
const CHECKED_FROM_MS = Date.UTC(2026, 0, 1);
const CHECKED_UNTIL_MS = Date.UTC(2027, 0, 2);

export const scheduleSchema = z
  .strictObject({
    intervalSeconds: integer(MIN_INTERVAL_SECONDS, 31_536_000, 60).describe(
      "Minimum time between the starts of two polls, in seconds. Restarts, changes and jitter never shorten it. Ignored if `cron` is set.",
    ),
    cron: text(256)
      .optional()
      .describe(
        "Cron expression with five fields (minute, hour, day of month, month, day of week), or six fields with seconds first.",
      ),
    timezone: text(64).default("UTC").describe("IANA time zone of `cron`, such as Europe/Zurich."),
  })
  .superRefine(({ cron, timezone }, context) => {
    const refuse = createIssueReporter(context);
    if (!isTimezone(timezone)) return refuse("timezone", "is not an IANA time zone");
    const flaw = cron === undefined ? undefined : findCronError(cron, timezone);
    if (flaw !== undefined) refuse("cron", flaw);
  })
  .prefault({})
  .describe("When to poll: at an interval, or by a cron expression.");

export const jitterSchema = z
  .number()
  .min(0)
  .max(1)
  .describe(
    "Fraction of the time between two polls by which each poll may be delayed at random. The delay prevents channels from polling the same server at the same moment.",
  )
  .default(0.1);

export function toPollSchedule({
  schedule: { cron, intervalSeconds, timezone },
  jitter,
}: {
  readonly schedule: z.output<typeof scheduleSchema>;
  readonly jitter: number;
}): PollSchedule {
  return cron === undefined ? { everySeconds: intervalSeconds, jitter } : { cron, timezone, jitter };
}

/** Returns the time between two polls, in ms: the interval with its jitter, or the time between the next two times of the cron expression. */
export function computeIntervalMs(
  config: { readonly schedule: z.output<typeof scheduleSchema>; readonly jitter: number },
  atMs: number,
): number {
  const { cron, intervalSeconds, timezone } = config.schedule;
  if (cron === undefined) return intervalSeconds * 1000 * (1 + config.jitter);
  const times = parseCron(cron, { currentDate: atMs, tz: timezone });
  const first = times.next().getTime();
  return times.next().getTime() - first;
}

function findCronError(cron: string, timezone: string): string | undefined {
  // `H` stands for a random time, which would differ between worker processes and after each restart.
  if (/\bH\b/i.test(cron)) return "must not contain H; use fixed times, and set `jitter` to spread the polls";
  try {
    const times = parseCron(cron, { currentDate: CHECKED_FROM_MS, tz: timezone });
    let before = Number.NEGATIVE_INFINITY;
    for (let checked = 0; checked < CHECKED_TIMES && before < CHECKED_UNTIL_MS; checked++) {
      const ms = times.next().getTime();
      if (ms - before < MIN_INTERVAL_SECONDS * 1000)
        return `must leave at least ${MIN_INTERVAL_SECONDS} seconds between polls`;
      before = ms;
    }
    return undefined;
  } catch (error) {
    return `is not a valid cron expression: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function isTimezone(timezone: string): boolean {
  // UTC is always valid. Skipping it matters, because the check creates a date format, which takes as long as parsing all other settings.
  if (timezone === "UTC") return true;
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return true;
  } catch {
    return false;
  }
}
