import { api, type Schemas } from "../../api/client.ts";
import type { ChartSeries } from "../../kit/chart/draw.ts";
import { formatDuration, formatPercent, formatShort } from "../../kit/text/numbers.ts";
import { type Range, startOf } from "./range.ts";

type Metric = Schemas["Series"]["metric"];

/** Exact counts of a time range. */
export interface Counts {
  readonly fromMs: number;
  readonly received: number;
  readonly published: number;
  readonly duplicate: number;
  readonly quarantined: number;
  readonly rejected: number;
  /** Response times of the newest interval with deliveries. `undefined` if there is none. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  /** Start times of the intervals. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
}

/** Loads the counts of an app, or of all apps. */
export async function loadCounts(
  appId: string | undefined,
  range: Range,
  signal: AbortSignal,
): Promise<Counts> {
  const fromMs = startOf(range);
  const from = new Date(fromMs).toISOString();
  const to = new Date(fromMs + range.ms).toISOString();
  const read = async (metric: Metric) => {
    const query = { metric, from, to, step: range.stepSeconds, ...(appId !== undefined && { appId }) };
    return (await api.get("/metrics/series", { query, signal })).points;
  };
  const [received, published, duplicate, quarantined, rejected, p50, p99] = await Promise.all([
    read("received"),
    read("published"),
    read("duplicate"),
    read("quarantined"),
    read("rejected"),
    read("latencyP50Ms"),
    read("latencyP99Ms"),
  ]);
  return {
    fromMs,
    received: sum(received),
    published: sum(published),
    duplicate: sum(duplicate),
    quarantined: sum(quarantined),
    rejected: sum(rejected),
    p50Ms: findLast(p50),
    p99Ms: findLast(p99),
    times: received.map(([at]) => Date.parse(at)),
    series: [
      {
        name: "Received",
        color: "--info",
        values: valuesOf(received),
        format: formatShort,
        scale: "left",
        isFilled: true,
      },
      {
        name: "Error rate",
        color: "--bad",
        values: received.map(([, all], index) => (all ? (rejected[index]?.[1] ?? 0) / all : null)),
        format: formatPercent,
        scale: "hidden",
      },
      {
        name: "Response time, p99",
        color: "--text-faint",
        values: valuesOf(p99),
        format: formatDuration,
        scale: "right",
      },
    ],
  };
}

type Points = Schemas["Series"]["points"];

const valuesOf = (points: Points): readonly (number | null)[] => points.map(([, value]) => value);

const sum = (points: Points): number => points.reduce((total, [, value]) => total + (value ?? 0), 0);

const findLast = (points: Points): number | undefined =>
  points.findLast(([, value]) => value !== null)?.[1] ?? undefined;
