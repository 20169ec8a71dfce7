/** Renders metrics in the text format OpenMetrics 1.0, which prom-client cannot do without renaming the counters of its registry. */
import type { MetricObjectWithValues, MetricValue } from "prom-client";

/** Text formats of `/metrics`. */
export type MetricsFormat = "prometheus" | "openMetrics";

/** Values of all metrics of a process, as plain objects. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** A recent value of a bucket, with the trace of its request. */
export interface Exemplar {
  readonly traceId: string;
  readonly value: number;
  /** Time of the value in ms since the Unix epoch. */
  readonly atMs: number;
}

/** A value of a histogram. `prom-client` does not declare these fields. */
export type SampledValue = MetricValue<string> & {
  readonly metricName?: string;
  /** `null` in the values of prom-client's own histograms. */
  readonly exemplar?: Exemplar | null | undefined;
};

const TOTAL = /_total$/;

export function renderOpenMetrics(metrics: MetricsSnapshot): string {
  const lines = metrics.flatMap((metric) => {
    const type = String(metric.type);
    const family = type === "counter" ? metric.name.replace(TOTAL, "") : metric.name;
    const name = type === "counter" ? `${family}_total` : family;
    return [
      `# HELP ${family} ${escapeText(metric.help)}`,
      `# TYPE ${family} ${type}`,
      ...metric.values.map((value) => formatSample(name, value)),
    ];
  });
  return [...lines, "# EOF\n"].join("\n");
}

function formatSample(name: string, { metricName = name, labels, value, exemplar }: SampledValue): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${formatLabel(label, text)}"`);
  const sample = `${metricName}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${formatNumber(value)}`;
  if (!exemplar) return sample;
  const { traceId, value: seconds, atMs } = exemplar;
  return `${sample} # {trace_id="${traceId}"} ${formatNumber(seconds)} ${atMs / 1_000}`;
}

/** OpenMetrics requires that the bound of a bucket is written like a floating-point number, such as `1.0`. */
const formatLabel = (label: string, text: string | number | undefined): string =>
  label === "le" && Number.isInteger(Number(text)) ? `${text}.0` : escapeText(String(text));

const formatNumber = (value: number): string =>
  Number.isNaN(value) ? "NaN" : String(value).replace("Infinity", "Inf").replace(/^Inf/, "+Inf");

const escapeText = (text: string): string =>
  text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
