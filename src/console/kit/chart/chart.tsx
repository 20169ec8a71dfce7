import { useEffect, useRef } from "preact/hooks";
import { theme } from "../layout/theme.ts";
import type { ChartSeries } from "./draw.ts";

interface Props {
  readonly label: string;
  /** Timestamps in milliseconds, in ascending order. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly heightPx?: number;
}

/** Line chart over time. The chart library is loaded on first use. Screen readers read the last values. */
export function Chart({ label, times, series, format, heightPx = 160 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chosen = theme.value;
  useEffect(() => {
    const aborting = new AbortController();
    void import("./draw.ts").then(({ drawChart }) => {
      const { current } = place;
      if (current) drawChart(current, { times, series, format, heightPx, signal: aborting.signal });
    });
    return () => aborting.abort();
  }, [times, series, chosen, heightPx]);
  const last = series.map(
    ({ name, values }) => `${name}: ${format(values.findLast((one) => one !== null) ?? 0)}`,
  );
  return (
    <figure
      class="chart"
      style={{ minHeight: `${heightPx}px` }}
      aria-label={`${label}. Last: ${last.join(", ")}`}
    >
      <div ref={place} aria-hidden="true" />
    </figure>
  );
}
