import type { Schemas } from "../../api/client.ts";
import type { ChartSeries } from "../../kit/chart/draw.ts";

type Delivery = Schemas["Delivery"];

/** Figures computed from recorded deliveries. If a channel gets more than one delivery per second, only a sample is recorded. */
export interface Recorded {
  readonly count: number;
  readonly published: number;
  readonly duplicates: number;
  readonly quarantined: number;
  readonly refused: number;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  /** Start times of the chart's intervals. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
}

const PARTS = 60;

const isRefused = ({ status }: Delivery): boolean => status === "refused" || status === "failed";

export function sumUp(rows: readonly Delivery[], nowMs: number, spanMs: number): Recorded {
  const from = nowMs - spanMs;
  const partMs = spanMs / PARTS;
  const recent = rows.filter(({ receivedAt }) => Date.parse(receivedAt) >= from);
  const zeros = (): number[] => Array.from({ length: PARTS }, () => 0);
  const lines = { published: zeros(), duplicates: zeros(), quarantined: zeros(), refused: zeros() };
  const sums = { published: 0, duplicates: 0, quarantined: 0, refused: 0 };
  for (const row of recent) {
    const part = Math.min(PARTS - 1, Math.max(0, Math.floor((Date.parse(row.receivedAt) - from) / partMs)));
    const counts = { ...row, refused: isRefused(row) ? 1 : 0 };
    for (const name of ["published", "duplicates", "quarantined", "refused"] as const) {
      lines[name][part] = (lines[name][part] ?? 0) + counts[name];
      sums[name] += counts[name];
    }
  }
  const durations = recent
    .filter((row) => !isRefused(row))
    .map(({ durationMs }) => durationMs)
    .sort((a, b) => a - b);
  return {
    count: recent.length,
    ...sums,
    p50Ms: quantile(durations, 0.5),
    p99Ms: quantile(durations, 0.99),
    times: Array.from({ length: PARTS }, (_, part) => from + part * partMs),
    series: [
      { name: "Published", color: "--info", values: lines.published },
      { name: "Duplicates", color: "--text-faint", values: lines.duplicates },
      { name: "Quarantined", color: "--warn", values: lines.quarantined },
      { name: "Rejected", color: "--bad", values: lines.refused },
    ],
  };
}

const quantile = (sorted: readonly number[], part: number): number | undefined =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];
