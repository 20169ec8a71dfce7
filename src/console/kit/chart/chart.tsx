import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../layout/theme.ts";
import type { ChartSeries } from "./draw.ts";

interface Props {
  readonly label: string;
  /** Timestamps in milliseconds, in ascending order. */
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly heightPx?: number;
}

/** Line chart over time. The chart library is loaded on first use. Screen readers read the last values. */
export function Chart({ label, times, series, heightPx = 160 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chosen = theme.value;
  const [turn, setTurn] = useState(0);
  // The canvas keeps its colors when the theme of the system changes, so it must be drawn again.
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = (): void => setTurn((before) => before + 1);
    dark.addEventListener("change", redraw);
    return () => dark.removeEventListener("change", redraw);
  }, []);
  useEffect(() => {
    const aborting = new AbortController();
    void import("./draw.ts").then(({ drawChart }) => {
      const { current } = place;
      if (current) drawChart(current, { times, series, heightPx, signal: aborting.signal });
    });
    return () => aborting.abort();
  }, [times, series, chosen, turn, heightPx]);
  const last = series.map(
    ({ name, values, format }) => `${name}: ${format(values.findLast((one) => one !== null) ?? 0)}`,
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
