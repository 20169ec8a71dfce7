import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import {
  type ChannelCounts,
  type ChannelName,
  createChannelCounter,
  DELIVERY_RESULTS,
  EVENT_OUTCOMES,
} from "./metrics/channel-counts.ts";
import { createTimings, SECONDS, type Timings } from "./metrics/histogram.ts";

/**
 * Counters of the gateway. Labels come from closed sets (kinds, states, reasons, routes; never types or paths), and ids from a
 * bounded choice.
 */
export interface Metrics {
  readonly registry: Registry;
  /** Of the channelCounter channels, and of the rest together. The counts are added to in place, and asked for anew each time. */
  readonly countsOf: (channel: ChannelName) => ChannelCounts;
  /** From a hook's request, headers read, to its answer: `ok`, `unverified`, `refused`, `unavailable`, `internal`. */
  readonly hookSeconds: Timings;
  /** Deliveries by channel kind and by what became of them: the kinds of an ingest result, `refused`, `unavailable`. */
  readonly deliveries: Tally;
  /** Events by channel kind; status `published` or `duplicate`. */
  readonly events: Tally;
  readonly quarantined: Tally;
  /** Records of deliveries that were not written, by channel kind and cause: `full`, `late`, `noRoom`, `overLimit`, `unavailable`. */
  readonly recordsDropped: Tally;
  /** Entries that went unread or not, because their organization holds too much and has asked for it. */
  readonly trimmedOverLimit: Counter;
  /** Deliveries that were accepted only because their channels try settings out, by what verification would have said. */
  readonly shadowed: Tally;
  /** Seconds that a call of the script that publishes took, from being handed to Redis until its answer. */
  readonly publishSeconds: Timings;
  /** From asking for the code of a schema that is not in memory: `stored`, `compiled`, `refused`. */
  readonly schemaCompileSeconds: Timings;
  /** Jobs of polls by channel kind and by what became of them (`PolledOnce`, `PollJobs`). */
  readonly polls: Tally;
  /** Seconds from when a poll was due by its plan until it began. */
  readonly pollLagSeconds: Histogram;
  /** Runs of sources by channel kind and by how they ended. */
  readonly sourceRuns: Tally;
  /** Streams that were opened again, by channel kind: after an end, a failure or a hand-over. */
  readonly sourceReconnects: Counter<"kind">;
  /** Writes of sources that were refused, by channel kind: `epoch` another had taken over, `cursor` it had moved. */
  readonly rejectedSourceWrites: Tally;
  /** Attempts at handlers by what they came to (`taken`, `refused`) and the class of the status (`2xx` …, `none`). */
  readonly handlerAttempts: Tally;
  /** By what they came to, as `handlerAttempts`. */
  readonly handlerSeconds: Timings;
  /** Answers of the management API; method `other` for those that it has no routes of. The route is a pattern. */
  readonly apiRequests: Counter<"method" | "route" | "status">;
  readonly apiRequestSeconds: Histogram<"method" | "route">;
  /** Adds a figure that is read when somebody asks. */
  readonly observe: (name: string, help: string, read: () => number) => void;
  /** Adds figures by a label from a closed set, all of them read when somebody asks. */
  readonly observeBy: (
    name: string,
    help: string,
    label: string,
    read: () => ReadonlyMap<string, number>,
  ) => void;
  /** Adds figures by several labels, all of them read when somebody asks; the reader sees to it that they are few. */
  readonly observeEach: <L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    read: () => Iterable<Figure<L>>,
  ) => void;
}

export interface Figure<L extends string = string> {
  readonly labels: Readonly<Record<L, string>>;
  readonly value: number;
}

/**
 * A counter by two labels for the way of events: plain numbers, handed on when somebody asks. prom-client hashes the labels at
 * each call, which is a tenth of what a delivery costs.
 */
export interface Tally {
  readonly add: (first: string, second: string, count?: number) => void;
}

/**
 * Counters in a registry of their own; with `includeProcessMetrics` beside those of Node, which watch the event loop by a timer that runs
 * until the process ends.
 */
export function createMetrics({
  includeProcessMetrics = false,
  channels = 100,
}: {
  readonly includeProcessMetrics?: boolean;
  /** How many are shown one by one. */
  readonly channels?: number;
} = {}): Metrics {
  const registry = new Registry();
  if (includeProcessMetrics) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const channelCounter = createChannelCounter({ maxShown: channels, nowMs: () => performance.now() });
  new Counter({
    name: "inlet_channel_deliveries_total",
    help: "Deliveries of the channelCounter channels by what became of them, and of the rest together",
    labelNames: ["app", "channel", "result"],
    registers,
    collect() {
      this.reset();
      for (const { name, counts } of channelCounter.read())
        for (const result of DELIVERY_RESULTS)
          this.inc({ app: name.appId, channel: name.uid, result }, counts[result]);
    },
  });
  new Counter({
    name: "inlet_channel_events_total",
    help: "What became of the items of the channelCounter channels, and of the rest together",
    labelNames: ["app", "channel", "outcome"],
    registers,
    collect() {
      this.reset();
      for (const { name, counts } of channelCounter.read())
        for (const outcome of EVENT_OUTCOMES)
          this.inc({ app: name.appId, channel: name.uid, outcome }, counts[outcome]);
    },
  });
  return {
    registry,
    countsOf: channelCounter.countsOf,
    hookSeconds: createTimings({
      name: "inlet_hook_duration_seconds",
      help: "From the headers of a hook's request until its answer, by outcome",
      label: "outcome",
      registers,
    }),
    deliveries: createTally({
      name: "inlet_deliveries_total",
      help: "Deliveries by what became of them",
      labelNames: ["kind", "result"],
      registers,
    }),
    events: createTally({
      name: "inlet_events_total",
      help: "Events on the bus, and repeats of them",
      labelNames: ["kind", "status"],
      registers,
    }),
    quarantined: createTally({
      name: "inlet_quarantined_total",
      help: "Items kept in quarantine by reason",
      labelNames: ["kind", "reason"],
      registers,
    }),
    recordsDropped: createTally({
      name: "inlet_delivery_records_dropped_total",
      help: "Records of deliveries that were not kept, by why",
      labelNames: ["kind", "cause"],
      registers,
    }),
    trimmedOverLimit: new Counter({
      name: "inlet_trimmed_over_limit_total",
      help: "Entries that went, read or not, of organizations that hold too much and have asked for it",
      registers,
    }),
    shadowed: createTally({
      name: "inlet_shadowed_total",
      help: "Deliveries accepted in shadow that verification would have refused, by why",
      labelNames: ["kind", "reason"],
      registers,
    }),
    publishSeconds: createTimings({
      name: "inlet_publish_duration_seconds",
      help: "From handing a call of the script that publishes to Redis until its answer",
      registers,
    }),
    schemaCompileSeconds: createTimings({
      name: "inlet_schema_compile_duration_seconds",
      help: "From asking for a schema that is not in memory until it is ready or refused, waiting included",
      label: "result",
      registers,
    }),
    polls: createTally({
      name: "inlet_polls_total",
      help: "Polls by what became of them",
      labelNames: ["kind", "result"],
      registers,
    }),
    pollLagSeconds: new Histogram({
      name: "inlet_poll_lag_seconds",
      help: "From when a poll was due until it began",
      buckets: [...SECONDS, 10, 30, 60, 300],
      registers,
    }),
    sourceRuns: createTally({
      name: "inlet_source_runs_total",
      help: "Connections and polls of sources by how they ended",
      labelNames: ["kind", "end"],
      registers,
    }),
    handlerAttempts: createTally({
      name: "inlet_handler_attempts_total",
      help: "Attempts to hand events to handlers by what they came to",
      labelNames: ["result", "status"],
      registers,
    }),
    handlerSeconds: createTimings({
      name: "inlet_handler_duration_seconds",
      help: "Attempts to hand an event to its handler, from the call until the end of the answer",
      label: "result",
      buckets: [...SECONDS, 10, 30],
      registers,
    }),
    sourceReconnects: new Counter({
      name: "inlet_source_reconnects_total",
      help: "Streams that were opened again after an end, a failure or a hand-over",
      labelNames: ["kind"],
      registers,
    }),
    rejectedSourceWrites: createTally({
      name: "inlet_source_refusals_total",
      help: "Writes of sources that were no longer their owner's",
      labelNames: ["kind", "cause"],
      registers,
    }),
    apiRequests: new Counter({
      name: "inlet_api_requests_total",
      help: "Answers of the management API by route",
      labelNames: ["method", "route", "status"],
      registers,
    }),
    apiRequestSeconds: new Histogram({
      name: "inlet_api_request_duration_seconds",
      help: "From a request of the management API until its answer",
      labelNames: ["method", "route"],
      buckets: SECONDS,
      registers,
    }),
    observe: (name, help, read) => {
      new Gauge({ name, help, registers, collect: createGaugeReader(read) });
    },
    observeBy: (name, help, label, read) => {
      new Gauge({ name, help, labelNames: [label], registers, collect: createLabeledGaugeReader(label, read) });
    },
    observeEach: (name, help, labels, read) => {
      new Gauge({
        name,
        help,
        labelNames: [...labels],
        registers,
        collect() {
          this.reset();
          for (const figure of read()) this.set(figure.labels, figure.value);
        },
      });
    },
  };
}

function createGaugeReader(read: () => number) {
  return function collect(this: Gauge): void {
    this.set(read());
  };
}

function createLabeledGaugeReader(label: string, read: () => ReadonlyMap<string, number>) {
  return function collect(this: Gauge): void {
    this.reset();
    for (const [value, count] of read()) this.set({ [label]: value }, count);
  };
}

function createTally(config: {
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
