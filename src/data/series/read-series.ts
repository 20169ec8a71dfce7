import { type RawBuilder, sql } from "kysely";
import { estimatePercentileMs } from "../../metrics/latency-buckets.ts";
import type { Queryable } from "../database.ts";

/** Metrics that sum up stored counts. */
export const COUNT_METRICS = [
  "received",
  "published",
  "duplicate",
  "quarantined",
  "ignored",
  "rejected",
  "recovered",
  "handlerSucceeded",
  "handlerFailed",
] as const;
export const LATENCY_METRICS = ["latencyP50Ms", "latencyP99Ms"] as const;
export const METRICS = [...COUNT_METRICS, ...LATENCY_METRICS] as const;
export type Metric = (typeof METRICS)[number];
type CountMetric = (typeof COUNT_METRICS)[number];
type LatencyMetric = (typeof LATENCY_METRICS)[number];

const FRACTIONS: Readonly<Record<LatencyMetric, number>> = { latencyP50Ms: 0.5, latencyP99Ms: 0.99 };

/** Which series to add up. Omitted fields match all. */
export interface SeriesFilter {
  readonly organizationId: string;
  readonly appId?: string | undefined;
  readonly channel?: string | undefined;
  readonly type?: string | undefined;
}

export interface SeriesRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface SeriesQuery extends SeriesRange {
  readonly metric: Metric;
  /** Reason of quarantined items, or status of rejected requests. */
  readonly detail?: string | undefined;
  /** Length of an interval. Intervals start at multiples of it. */
  readonly stepMs: number;
}

/** Start of an interval in ms since 1970, with its value. A percentile without observations is `null`. */
export type Point = readonly [atMs: number, value: number | null];

export const isLatency = (metric: Metric): metric is LatencyMetric => metric in FRACTIONS;

/**
 * Returns a value for each interval, starting with the interval of `fromMs`. Counts older than 48 hours belong to the first minute of their
 * hour.
 *
 * @throws UnavailableError
 */
export async function readSeries(
  db: Queryable,
  filter: SeriesFilter,
  { metric, detail, stepMs, ...range }: SeriesQuery,
): Promise<readonly Point[]> {
  const fromMs = Math.floor(range.fromMs / stepMs) * stepMs;
  const at = sql<number>`floor(extract(epoch FROM at) * 1000 / ${stepMs}::bigint)::bigint * ${stepMs}::bigint`;
  const counts = selectCounts(filter, {
    fromMs,
    toMs: range.toMs,
    metrics: [isLatency(metric) ? "latency" : metric],
    detail,
  });
  const values = isLatency(metric)
    ? await readLatencies(db, metric, at, counts)
    : await readCounts(db, at, counts);
  const points: Point[] = [];
  for (let atMs = fromMs; atMs < range.toMs; atMs += stepMs)
    points.push([atMs, values.get(atMs) ?? (isLatency(metric) ? null : 0)]);
  return points;
}

async function readCounts(
  db: Queryable,
  at: RawBuilder<number>,
  counts: RawBuilder<unknown>,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await sql<{ at: number; count: number }>`
    SELECT ${at} AS at, sum(count)::bigint AS count FROM (${counts}) AS counts GROUP BY 1`.execute(db);
  return new Map(rows.map((row) => [row.at, row.count]));
}

async function readLatencies(
  db: Queryable,
  metric: LatencyMetric,
  at: RawBuilder<number>,
  counts: RawBuilder<unknown>,
): Promise<ReadonlyMap<number, number | null>> {
  const { rows } = await sql<{ at: number; buckets: number[] }>`
    SELECT ${at} AS at, sum_buckets(buckets) AS buckets FROM (${counts}) AS counts GROUP BY 1`.execute(db);
  return new Map(rows.map((row) => [row.at, estimatePercentileMs(row.buckets, FRACTIONS[metric])]));
}

/** Selects the counts of all series that match, from both tables. Each count is in one of them. */
const selectCounts = (
  { organizationId, appId, channel, type }: SeriesFilter,
  {
    fromMs,
    toMs,
    metrics,
    detail,
  }: SeriesRange & { readonly metrics: readonly string[]; readonly detail?: string | undefined },
) => {
  const where = [
    sql`series.organization_id = ${organizationId}`,
    sql`metric = ANY (${metrics}::text[])`,
    ...(appId === undefined ? [] : [sql`series.app_id = ${appId}`]),
    ...(channel === undefined ? [] : [sql`series.channel = ${channel}`]),
    ...(type === undefined ? [] : [sql`series.type = ${type}`]),
    ...(detail === undefined ? [] : [sql`detail = ${detail}`]),
  ];
  const select = (table: string, at: string) => sql`
    SELECT series.app_id, series.channel, metric, ${sql.ref(at)} AS at, count, buckets
    FROM series JOIN ${sql.table(table)} AS stored ON stored.series_id = series.id
    WHERE ${sql.join(where, sql` AND `)} AND ${sql.ref(at)} >= ${new Date(fromMs)} AND ${sql.ref(at)} < ${new Date(toMs)}`;
  return sql`${select("series_minutes", "minute")} UNION ALL ${select("series_hours", "hour")}`;
};

/** Sums of a channel over a time range. */
export interface ChannelTotals extends Readonly<Record<CountMetric, number>> {
  readonly appId: string;
  readonly channel: string;
  readonly latencyP50Ms: number | null;
  readonly latencyP99Ms: number | null;
  /** Received items in equal parts of the time range. */
  readonly trend: readonly number[];
}

/**
 * Returns the sums of each channel with counts in the time range, ordered by received items.
 *
 * @throws UnavailableError
 */
export async function readChannelTotals(
  db: Queryable,
  filter: SeriesFilter,
  { fromMs, toMs }: SeriesRange,
  parts: number,
): Promise<readonly ChannelTotals[]> {
  const range = { fromMs, toMs, metrics: [...COUNT_METRICS, "latency"] };
  const { rows } = await sql<{
    appId: string;
    channel: string;
    metric: CountMetric | "latency";
    part: number;
    count: number;
    buckets: number[] | null;
  }>`
    SELECT app_id AS "appId", channel, metric,
      CASE WHEN metric = 'received' THEN floor(extract(epoch FROM at - ${new Date(fromMs)}::timestamptz)
        * ${parts}::integer / ${(toMs - fromMs) / 1_000}::float8)::integer ELSE 0 END AS part,
      sum(count)::bigint AS count, sum_buckets(buckets) AS buckets
    FROM (${selectCounts(filter, range)}) AS counts GROUP BY 1, 2, 3, 4`.execute(db);
  const channels = [...Map.groupBy(rows, ({ appId, channel }) => `${appId} ${channel}`).values()];
  return channels
    .flatMap((of) => {
      const [first] = of;
      if (first === undefined) return [];
      const sum = (metric: CountMetric): number =>
        of.reduce((total, row) => total + (row.metric === metric ? row.count : 0), 0);
      const buckets = of.find(({ metric }) => metric === "latency")?.buckets ?? [];
      const counts = Object.fromEntries(COUNT_METRICS.map((metric) => [metric, sum(metric)]));
      return {
        appId: first.appId,
        channel: first.channel,
        ...(counts as Record<CountMetric, number>),
        latencyP50Ms: estimatePercentileMs(buckets, FRACTIONS.latencyP50Ms),
        latencyP99Ms: estimatePercentileMs(buckets, FRACTIONS.latencyP99Ms),
        trend: Array.from({ length: parts }, (_, part) =>
          of.reduce(
            (total, row) => total + (row.metric === "received" && row.part === part ? row.count : 0),
            0,
          ),
        ),
      };
    })
    .sort((a, b) => b.received - a.received || (a.channel < b.channel ? -1 : 1));
}
