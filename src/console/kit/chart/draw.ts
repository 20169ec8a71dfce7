import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface ChartSeries {
  readonly name: string;
  /** Name of a CSS custom property: `--ok`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
}

interface Drawn {
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
  readonly heightPx: number;
  /** Removes the chart when it aborts. */
  readonly signal: AbortSignal;
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function drawChart(place: HTMLElement, { times, series, format, heightPx, signal }: Drawn): void {
  if (signal.aborted) return;
  const styles = getComputedStyle(place);
  const font = `11px ${styles.getPropertyValue("--font")}`;
  const axis = {
    stroke: color(place, "--text-faint"),
    font,
    grid: { stroke: color(place, "--line"), width: 1 },
    ticks: { show: false },
  };
  const plot = new uPlot(
    {
      width: place.clientWidth,
      height: heightPx,
      cursor: { drag: { setScale: false } },
      scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
      axes: [
        { ...axis, space: 70, values: (_, splits) => splits.map((seconds) => TIME.format(seconds * 1_000)) },
        { ...axis, size: 64, values: (_, splits) => splits.map(format) },
      ],
      series: [
        { label: "From", value: (_, seconds) => (seconds === null ? "–" : TIME.format(seconds * 1_000)) },
        ...series.map(({ name, color: token }) => ({
          label: name,
          stroke: color(place, token),
          width: 1.5,
          points: { show: false },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
        })),
      ],
      legend: { live: true },
      // While the pointer is outside the chart, the legend shows the last values.
      hooks: { ready: [(ready) => ready.setLegend({ idx: times.length - 1 })] },
    },
    [times.map((ms) => ms / 1_000), ...series.map(({ values }) => [...values])],
    place,
  );
  const observer = new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: heightPx }));
  observer.observe(place);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    plot.destroy();
  });
}

/**
 * Converts a CSS custom property to a color for the canvas. The value can contain `light-dark()`, which can only be resolved on an element.
 */
function color(place: HTMLElement, token: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${token})`;
  place.append(probe);
  const { color: found } = getComputedStyle(probe);
  probe.remove();
  return found;
}
