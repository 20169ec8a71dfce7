/** Counters and histograms for frequent use. Those of prom-client allocate an object and hash the labels for each value. */
import { Counter, Histogram, type Registry } from "prom-client";
import type { Exemplar } from "./open-metrics.ts";

/**
 * A counter with two labels. It keeps plain numbers, because hashing labels in prom-client would cost 10 % of a delivery's CPU time.
 */
export interface Tally {
  readonly add: (first: string, second: string, count?: number) => void;
}

export function createTally(config: {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [string, string];
  readonly registers: Registry[];
}): Tally {
  const counts = new Map<string, Map<string, number>>();
  const [first, second] = config.labelNames;
  new Counter({
    ...config,
    collect() {
      for (const [a, bySecond] of counts) {
        for (const [b, count] of bySecond) this.inc({ [first]: a, [second]: b }, count);
        bySecond.clear();
      }
    },
  });
  return {
    add(a, b, count = 1) {
      let bySecond = counts.get(a);
      if (bySecond === undefined) {
        bySecond = new Map();
        counts.set(a, bySecond);
      }
      bySecond.set(b, (bySecond.get(b) ?? 0) + count);
    },
  };
}

/** Durations in seconds, with at most one label from a closed set. */
export interface Timings {
  /**
   * @param value value of the label
   * @param traceId the trace that the duration belongs to, if it is sampled. It becomes the exemplar of its bucket
   */
  readonly observe: (seconds: number, value?: string, traceId?: string) => void;
}

/** Upper bounds of the buckets in seconds, from one millisecond to the longest usual timeout. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

interface HistogramConfig {
  readonly name: string;
  readonly help: string;
  readonly label?: string;
  readonly buckets?: readonly number[];
  readonly registers: Registry[];
}

export function createTimings({ buckets = SECONDS, label, ...config }: HistogramConfig): Timings {
  const series = new Map<string, Series>();
  new ReadHistogram({
    ...config,
    ...(label !== undefined && { labelNames: [label] }),
    read: () =>
      [...series].flatMap(([value, one]) =>
        toValues(config.name, buckets, label === undefined ? {} : { [label]: value }, one),
      ),
  });
  return {
    observe(seconds, value = "", traceId) {
      let one = series.get(value);
      if (one === undefined) {
        one = { counts: new Float64Array(buckets.length + 1), sum: 0, exemplars: undefined };
        series.set(value, one);
      }
      let i = 0;
      while (i < buckets.length && seconds > (buckets[i] ?? 0)) i++;
      one.counts[i] = (one.counts[i] ?? 0) + 1;
      one.sum += seconds;
      if (traceId === undefined) return;
      one.exemplars ??= [];
      one.exemplars[i] = { traceId, value: seconds, atMs: Date.now() };
    },
  };
}

interface Series {
  /** Number of values in each bucket, not cumulative. The last element counts values above all bounds. */
  readonly counts: Float64Array;
  sum: number;
  /** The newest exemplar of each bucket. `undefined` until a duration belongs to a trace. */
  exemplars: (Exemplar | undefined)[] | undefined;
}

interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly exemplar?: Exemplar | undefined;
}

function toValues(
  name: string,
  buckets: readonly number[],
  labels: Readonly<Record<string, string>>,
  { counts, sum, exemplars }: Series,
): readonly Value[] {
  let count = 0;
  const values: Value[] = [];
  for (const [i, part] of counts.entries()) {
    count += part;
    values.push({
      metricName: `${name}_bucket`,
      labels: { ...labels, le: buckets[i] ?? "+Inf" },
      value: count,
      ...(exemplars?.[i] && { exemplar: exemplars[i] }),
    });
  }
  values.push({ metricName: `${name}_sum`, labels, value: sum });
  values.push({ metricName: `${name}_count`, labels, value: count });
  return values;
}

class ReadHistogram extends Histogram {
  readonly #read: () => readonly Value[];
  readonly #facts: Pick<HistogramConfig, "name" | "help">;

  constructor({
    read,
    ...config
  }: HistogramConfig & { readonly labelNames?: string[]; readonly read: () => readonly Value[] }) {
    const { name, help, labelNames = [], registers } = config;
    super({ name, help, labelNames, registers });
    this.#read = read;
    this.#facts = { name, help };
  }

  // The text format of Prometheus has no exemplars.
  async getForPromString() {
    const values = this.#read().map(({ exemplar: _, ...value }) => value);
    return { ...this.#facts, type: "histogram", values };
  }

  override async get() {
    // The declared type of `type` is an enum that does not exist at runtime.
    const metric: unknown = { ...this.#facts, type: "histogram", aggregator: "sum", values: this.#read() };
    return metric as Awaited<ReturnType<Histogram["get"]>>;
  }
}
