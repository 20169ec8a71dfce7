/** Combines the metrics of several processes. */
import { AggregatorRegistry, type MetricValue } from "prom-client";
import {
  type Exemplar,
  type MetricsFormat,
  type MetricsSnapshot,
  renderOpenMetrics,
  type SampledValue,
} from "./open-metrics.ts";

type MetricObject = MetricsSnapshot[number];

/** Label of all series that belong to one process. */
const PROCESS = "process";

/** Metrics of all processes, including the counters of processes that have ended. */
export interface MachineMetrics {
  /** Stores the latest values of a process. `key` is unique for each process, also among processes with the same number. */
  readonly update: (key: number, process: number, values: MetricsSnapshot) => void;
  /** Adds the counters of a process that has ended to all later results. Forgets its gauges. */
  readonly end: (key: number) => void;
  readonly render: (format: MetricsFormat) => Promise<string>;
}

export function createMachineMetrics(): MachineMetrics {
  const running = new Map<number, MetricsSnapshot>();
  let ended: MetricsSnapshot = [];
  return {
    update: (key, process, values) =>
      void running.set(
        key,
        values.map((metric) => labelProcess(metric, String(process))),
      ),
    end(key) {
      const last = running.get(key);
      running.delete(key);
      if (last === undefined) return;
      const counters = last.filter(({ type }) => String(type) === "counter" || String(type) === "histogram");
      ended = sum([ended, counters]);
    },
    // The running processes come first, because the help of a metric comes from the first process that has it.
    async render(format) {
      const registry = aggregate([...running.values(), ended]);
      if (format === "prometheus") return registry.metrics();
      return renderOpenMetrics(addExemplars(await registry.getMetricsAsJSON(), [...running.values()].flat()));
    },
  };
}

/**
 * Adds the number of the process to all values. Gauges that describe the whole machine or its stores stay without the number, and have the
 * largest or smallest value of all processes.
 */
function labelProcess(metric: MetricObject, process: string): MetricObject {
  const { name, aggregator } = metric;
  if (name.startsWith("inlet_") && (aggregator === "max" || aggregator === "min")) return metric;
  const values = metric.values.map((value) => ({
    ...value,
    labels: { ...value.labels, [PROCESS]: process },
  }));
  return { ...metric, aggregator: "sum", values };
}

const aggregate = (snapshots: readonly MetricsSnapshot[]) =>
  AggregatorRegistry.aggregate(snapshots.map((each) => [...each]));

/** Adds up values with the same name and labels. */
function sum(snapshots: readonly MetricsSnapshot[]): MetricsSnapshot {
  const byName = new Map<
    string,
    { readonly metric: MetricObject; readonly values: Map<string, MetricValue<string>> }
  >();
  for (const metric of snapshots.flat()) {
    const known = byName.get(metric.name) ?? { metric, values: new Map() };
    byName.set(metric.name, known);
    for (const value of metric.values) {
      const key = toKey(value);
      const before = known.values.get(key)?.value ?? 0;
      known.values.set(key, { ...value, value: before + value.value });
    }
  }
  return [...byName.values()].map(({ metric, values }) => ({ ...metric, values: [...values.values()] }));
}

/** Returns a key that is the same for all values with the same name and labels. */
const toKey = ({ metricName = "", labels }: SampledValue): string =>
  JSON.stringify([metricName, Object.entries(labels).sort()]);

/** Adds the exemplars of the processes to values with the same names and labels. prom-client drops them. */
function addExemplars(metrics: MetricsSnapshot, ofProcesses: MetricsSnapshot): MetricsSnapshot {
  const exemplars = new Map<string, Exemplar>();
  for (const value of ofProcesses.flatMap(({ values }): readonly SampledValue[] => values))
    if (value.exemplar) exemplars.set(toKey(value), value.exemplar);
  return metrics.map((metric) => ({
    ...metric,
    values: metric.values.map((value) => ({ ...value, exemplar: exemplars.get(toKey(value)) })),
  }));
}
