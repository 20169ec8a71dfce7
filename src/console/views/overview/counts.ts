import { api, type Schemas } from "../../api/client.ts";
import type { ChartSeries } from "../../kit/chart/draw.ts";

type Metric = Schemas["Series"]["metric"];

const HOUR_MS = 3_600_000;
const MINUTE_SECONDS = 60;

/** Exact counts of the last hour. */
export interface Counts {
  readonly fromMs: number;
  readonly received: number;
  readonly published: number;
  readonly duplicate: number;
  readonly quarantined: number;
  readonly rejected: number;
  /** Response times of the newest minute with deliveries. `undefined` if there is none. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  /** Start times of the minutes. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
}

/** Loads the counts of an app, or of all apps. */
export async function loadCounts(appId: string | undefined, signal: AbortSignal): Promise<Counts> {
  // All metrics need the same minutes, also if a new one begins meanwhile.
  const fromMs = Math.floor((Date.now() - HOUR_MS) / 60_000 + 1) * 60_000;
  const from = new Date(fromMs).toISOString();
  const to = new Date(fromMs + HOUR_MS).toISOString();
  const read = async (metric: Metric) => {
    const query = { metric, from, to, step: MINUTE_SECONDS, ...(appId !== undefined && { appId }) };
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
  const times = received.map(([at]) => Date.parse(at));
  const valuesOf = (points: Points) => points.map(([, value]) => value);
  return {
    fromMs,
    received: sum(received),
    published: sum(published),
    duplicate: sum(duplicate),
    quarantined: sum(quarantined),
    rejected: sum(rejected),
    p50Ms: findLast(p50),
    p99Ms: findLast(p99),
    times,
    series: [
      { name: "Published", color: "--info", values: valuesOf(published) },
      { name: "Duplicates", color: "--text-faint", values: valuesOf(duplicate) },
      { name: "Quarantined", color: "--warn", values: valuesOf(quarantined) },
      { name: "Rejected", color: "--bad", values: valuesOf(rejected) },
    ],
  };
}

type Points = Schemas["Series"]["points"];

const sum = (points: Points): number => points.reduce((total, [, value]) => total + (value ?? 0), 0);

const findLast = (points: Points): number | undefined =>
  points.findLast(([, value]) => value !== null)?.[1] ?? undefined;
