import { z } from "zod";
import { MINUTES_KEPT_MS } from "../../data/series/age-counts.ts";
import {
  COUNT_METRICS,
  METRICS,
  type Metric,
  readChannelTotals,
  readSeries,
} from "../../data/series/read-series.ts";
import { MAX_SERIES, OTHER } from "../../data/series/series-names.ts";
import { QUARANTINE_REASONS } from "../../event/outcome.ts";
import { invalidParameters } from "../../http/errors.ts";
import { type Shown, timeInput, timestamp } from "../../http/fields.ts";
import { pageQuery } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { listOf } from "../kit/answer.ts";
import { slicePage } from "../kit/list-page.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const MINUTE_SECONDS = 60;
const HOUR_SECONDS = 3_600;
const DAY_SECONDS = 86_400;
const MAX_STEP_SECONDS = 30 * DAY_SECONDS;
const MAX_POINTS = 3_000;
const DEFAULT_RANGE_MS = HOUR_SECONDS * 1_000;
/** Maximum number of points without `step`. */
const DEFAULT_POINTS = 200;
const DEFAULT_STEPS = [MINUTE_SECONDS, 300, 900, HOUR_SECONDS, 6 * HOUR_SECONDS, DAY_SECONDS];
const TREND_PARTS = 30;

/** Metrics whose counts have a type. */
const TYPED: readonly Metric[] = ["published", "duplicate", "recovered", "handlerSucceeded", "handlerFailed"];

const rangeQuery = {
  appId: z
    .string()
    .optional()
    .meta({
      description: `Counts only this app, or the intake of this blueprint. \`${OTHER}\` selects the counts of all series beyond ${MAX_SERIES}.`,
    }),
  channel: z.string().optional().meta({ description: "Counts only channels with this uid." }),
  from: timeInput.optional().describe("Start of the range. Default: one hour before `to`."),
  to: timeInput.optional().describe("End of the range, exclusive. Default: now."),
} as const;

const seriesQuery = z.object({
  metric: z.enum(METRICS).default("received").meta({ description: "Metric to read." }),
  ...rangeQuery,
  type: z
    .string()
    .optional()
    .meta({ description: `Counts only events of this type. Only for ${formatNames(TYPED)}.` }),
  reason: z
    .enum(QUARANTINE_REASONS)
    .optional()
    .meta({ description: "Counts only items with this reason. Only for `quarantined`." }),
  status: z
    .string()
    .regex(/^[1-5]\d\d$/, "must be an HTTP status such as 429")
    .optional()
    .meta({ description: "Counts only responses with this HTTP status. Only for `rejected`." }),
  step: z
    .string()
    .regex(/^\d{1,9}$/, "must be a number of seconds")
    .transform(Number)
    .optional()
    .meta({
      description: `Length of an interval in seconds, a multiple of 60. Data older than 48 hours needs a multiple of 3600. At most ${MAX_POINTS} intervals. Default: 60 seconds to one day, depending on the range.`,
      shown: { type: "integer", minimum: MINUTE_SECONDS, maximum: MAX_STEP_SECONDS },
    }),
});

const seriesSchema = z
  .object({
    metric: z.enum(METRICS),
    stepSeconds: z.int(),
    points: z.array(z.tuple([timestamp, z.number().nullable()])).meta({
      description: "Start and value of each interval. A percentile without observations is null.",
      example: [["2026-01-31T08:00:00.000Z", 1204]],
    }),
  })
  .meta({ id: "Series", description: "Values of a metric over time." });

const count = z.int();
const totalsSchema = z
  .object({
    appId: z.string(),
    channel: z.string().meta({ description: `Uid of the channel, or \`${OTHER}\`.` }),
    ...(Object.fromEntries(COUNT_METRICS.map((metric) => [metric, count])) as Record<
      (typeof COUNT_METRICS)[number],
      typeof count
    >),
    latencyP50Ms: z.number().nullable(),
    latencyP99Ms: z.number().nullable(),
    trend: z
      .array(z.int())
      .meta({ description: `\`received\` in each of ${TREND_PARTS} equal parts of the range.` }),
  })
  .meta({ id: "ChannelTotals", description: "Sums of a channel over a time range." });
export type ChannelTotals = Shown<z.output<typeof totalsSchema>>;

export const series: Resource = {
  tag: "Metrics",
  routes: ({ db, clock }) => [
    defineRoute({
      at: "GET /metrics/series",
      operation: "getSeries",
      summary: "Get the values of a metric over time",
      description:
        "Sums the counts of the organization. The counts are exact, but a gateway writes them every 10 seconds, so the newest are missing. Counts are stored for 48 hours by the minute, then for 90 days by the hour.",
      query: seriesQuery,
      answer: seriesSchema,
      async handle({ caller: { organizationId }, query }) {
        const { metric, appId, channel, type, reason, status, step } = query;
        requireFitting(query);
        const range = parseRange(query, clock());
        const stepSeconds = step ?? chooseStep(range, clock());
        requireStep(stepSeconds, range, clock());
        const points = await readSeries(
          db,
          { organizationId, appId, channel, type },
          { ...range, metric, detail: reason ?? status, stepMs: stepSeconds * 1_000 },
        );
        return {
          metric,
          stepSeconds,
          points: points.map(([atMs, value]): [string, number | null] => [formatTimestamp(atMs), value]),
        };
      },
    }),
    defineRoute({
      at: "GET /metrics/channels",
      operation: "listChannelTotals",
      summary: "List the channels with their sums over a time range",
      description: "Lists only channels with counts in the range. The busiest come first.",
      query: z.object({ ...rangeQuery, ...pageQuery }),
      answer: listOf(totalsSchema),
      async handle({ caller: { organizationId }, query }) {
        const { appId, channel } = query;
        const range = parseRange(query, clock());
        const filter = { organizationId, appId, channel };
        return slicePage(await readChannelTotals(db, filter, range, TREND_PARTS), query);
      },
    }),
  ],
};

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/** @throws ApiError 400 */
function parseRange(
  query: { readonly from?: number | undefined; readonly to?: number | undefined },
  nowMs: number,
): Range {
  const toMs = query.to ?? nowMs;
  const fromMs = query.from ?? toMs - DEFAULT_RANGE_MS;
  if (fromMs < toMs) return { fromMs, toMs };
  throw invalidParameters([
    {
      path: "from",
      message: `${formatTimestamp(fromMs)} must be before \`to\`, which is ${formatTimestamp(toMs)}; use an earlier \`from\` or a later \`to\``,
    },
  ]);
}

/** @throws ApiError 400 if a filter does not apply to the metric */
function requireFitting({ metric, type, reason, status }: z.output<typeof seriesQuery>): void {
  if (type !== undefined && !TYPED.includes(metric))
    reject(
      "type",
      type,
      `does not apply to \`${metric}\`, which is counted before an item has a type`,
      TYPED,
    );
  if (reason !== undefined && metric !== "quarantined")
    reject("reason", reason, `does not apply to \`${metric}\``, ["quarantined"]);
  if (status !== undefined && metric !== "rejected")
    reject("status", status, `does not apply to \`${metric}\``, ["rejected"]);
}

function reject(path: string, value: string, reason: string, metrics: readonly Metric[]): never {
  const message = `\`${value}\` ${reason}; leave \`${path}\` out, or use the metric ${formatNames(metrics)}`;
  throw invalidParameters([{ path, message }]);
}

function formatNames(metrics: readonly Metric[]): string {
  return metrics.map((metric) => `\`${metric}\``).join(", ");
}

/** Returns whether the range starts where counts are only stored by the hour. */
const isByHour = ({ fromMs }: Range, nowMs: number): boolean => fromMs < nowMs - MINUTES_KEPT_MS;

function chooseStep(range: Range, nowMs: number): number {
  const least = isByHour(range, nowMs) ? HOUR_SECONDS : MINUTE_SECONDS;
  const fitting = DEFAULT_STEPS.find(
    (step) => step >= least && (range.toMs - range.fromMs) / 1_000 / step <= DEFAULT_POINTS,
  );
  return fitting ?? DAY_SECONDS;
}

/** @throws ApiError 400 */
function requireStep(step: number, range: Range, nowMs: number): void {
  const fail = (message: string): never => {
    throw invalidParameters([{ path: "step", message: `${step} ${message}` }]);
  };
  if (step < MINUTE_SECONDS || step > MAX_STEP_SECONDS || step % MINUTE_SECONDS !== 0)
    fail(`must be a multiple of ${MINUTE_SECONDS} seconds from ${MINUTE_SECONDS} to ${MAX_STEP_SECONDS}`);
  if (step % HOUR_SECONDS !== 0 && isByHour(range, nowMs))
    fail(
      `must be a multiple of ${HOUR_SECONDS}, because counts older than 48 hours are stored by the hour; use ${HOUR_SECONDS}, or a \`from\` within 48 hours`,
    );
  const seconds = (range.toMs - range.fromMs) / 1_000;
  if (seconds / step <= MAX_POINTS) return;
  const unit = isByHour(range, nowMs) ? HOUR_SECONDS : MINUTE_SECONDS;
  const enough = Math.ceil(seconds / MAX_POINTS / unit) * unit;
  fail(`gives more than ${MAX_POINTS} points for this range; use at least ${enough}, or a shorter range`);
}
