import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface ChartSeries {
  readonly name: string;
  /** Name of a CSS custom property: `--ok`. */
  readonly color: string;
  readonly values: readonly (number | null)[];
  readonly format: (value: number) => string;
  /**
   * `left` and `right` are the scales of the two axes. `hidden` is a scale without an axis, whose values only the
   * legend shows.
   */
  readonly scale: "left" | "right" | "hidden";
  readonly isFilled?: boolean;
}

interface Drawn {
  readonly times: readonly number[];
  readonly series: readonly ChartSeries[];
  readonly heightPx: number;
  /** Removes the chart when it aborts. */
  readonly signal: AbortSignal;
}

const DAY_MS = 86_400_000;
const TIME = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const DATE = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

export function drawChart(place: HTMLElement, { times, series, heightPx, signal }: Drawn): void {
  if (signal.aborted) return;
  const font = `11px ${getComputedStyle(place).getPropertyValue("--font")}`;
  const axis = { stroke: color(place, "--text-faint"), font, ticks: { show: false } };
  const fromZero = {
    range: (_: uPlot, __: number, max: number): [number, number] => [0, max > 0 ? max * 1.1 : 1],
  };
  const spansDays = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * DAY_MS;
  const formatTime = (seconds: number): string => (spansDays ? DATE : TIME).format(seconds * 1_000);
  const side = (scale: "left" | "right") => series.find((one) => one.scale === scale);
  const right = side("right");
  const plot = new uPlot(
    {
      width: place.clientWidth,
      height: heightPx,
      cursor: { drag: { setScale: false } },
      scales: { left: fromZero, right: fromZero, hidden: fromZero },
      axes: [
        {
          ...axis,
          size: 28,
          space: 70,
          grid: { show: false },
          values: (_, splits) => splits.map(formatTime),
        },
        {
          ...axis,
          scale: "left",
          size: 48,
          grid: { stroke: color(place, "--line"), width: 1 },
          values: (_, splits) => splits.map((value) => side("left")?.format(value) ?? ""),
        },
        ...(right === undefined
          ? []
          : [
              {
                ...axis,
                scale: "right",
                side: 1 as const,
                size: 64,
                grid: { show: false },
                values: (_: uPlot, splits: number[]) => splits.map(right.format),
              },
            ]),
      ],
      series: [
        {
          label: "Interval from",
          value: (_, seconds) =>
            seconds === null
              ? "–"
              : `${spansDays ? `${DATE.format(seconds * 1_000)}, ` : ""}${TIME.format(seconds * 1_000)}`,
        },
        ...series.map(({ name, color: token, values, format, scale, isFilled = false }) => ({
          label: name,
          scale,
          stroke: color(place, token),
          ...(isFilled && { fill: color(place, `${token}-ground`) }),
          width: 1.5,
          // A line needs two values next to each other, so a single one is drawn as a point.
          points: { show: false, size: 5, filter: () => findSingle(values) },
          value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
        })),
      ],
      legend: { live: true },
      // While the pointer is outside the chart, the legend shows the last interval with values in all series.
      hooks: { ready: [(ready) => ready.setLegend({ idx: Math.max(0, findLastComplete(times, series)) })] },
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

/** Returns the index of the last time at which each series has a value, or -1. */
const findLastComplete = (
  times: readonly number[],
  series: readonly { readonly values: readonly (number | null)[] }[],
): number =>
  times.findLastIndex((_, index) => series.every(({ values }) => typeof values[index] === "number"));

/** Returns the indexes of values without a value before and after them. */
const findSingle = (values: readonly (number | null)[]): number[] =>
  values.flatMap((value, index) =>
    value !== null && (values[index - 1] ?? null) === null && (values[index + 1] ?? null) === null
      ? [index]
      : [],
  );

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
