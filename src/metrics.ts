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
 * The gateway's metrics. All label values come from closed sets, never from event types or paths, to limit the number of series.
 *
 * Ids are labels only for a bounded number of channels, subscriptions and organizations.
 */
export interface Metrics {
  readonly registry: Registry;
  /**
   * Returns the counts of a channel, which the caller increments directly. Do not keep them, because a channel may stop being
   * counted individually.
   *
   * Less busy channels share their counts.
   */
  readonly countsOf: (channel: ChannelName) => ChannelCounts;
  /** Time from the headers of a hook request to its response, by outcome: `ok`, `unverified`, `refused`, `unavailable`, `internal`. */
  readonly hookSeconds: Timings;
  /** Number of deliveries by channel kind and result: any kind of `IngestResult`, or `refused`, `unavailable`, `internal`. */
  readonly deliveries: Tally;
  /** Number of events by channel kind and status: `published` or `duplicate`. */
  readonly events: Tally;
  readonly quarantined: Tally;
  /** Number of delivery records that were not written, by channel kind and cause: `full`, `late`, `noRoom`, `overLimit`, `unavailable`. */
  readonly recordsDropped: Tally;
  /** Number of entries that were trimmed, even unread, because their organization exceeds its storage limit and has chosen trimming. */
  readonly trimmedOverLimit: Counter;
  /** Number of deliveries that failed verification but were accepted in shadow mode, by failure reason. */
  readonly shadowed: Tally;
  /** Time in seconds from sending a publish script to Redis until its reply. */
  readonly publishSeconds: Timings;
  /** Time in seconds to load or compile a schema that is not in memory, by result: `stored`, `compiled`, `refused`. */
  readonly schemaCompileSeconds: Timings;
  /** Number of poll jobs by channel kind and result. */
  readonly polls: Tally;
  /** Time in seconds from the due time of a poll to its start. */
  readonly pollLagSeconds: Histogram;
  /** Number of pull source runs, by channel kind and end. */
  readonly sourceRuns: Tally;
  /** Number of reopened streams by channel kind. A stream reopens after it ended, failed or moved to another worker. */
  readonly sourceReconnects: Counter<"kind">;
  /**
   * Number of rejected writes of pull sources by channel kind and cause: `epoch` (another worker took over) or `cursor` (the stored
   * cursor has changed).
   */
  readonly rejectedSourceWrites: Tally;
  /** Number of handler attempts by result (`taken`, `refused`) and status class (`2xx` …, or `none` without a response). */
  readonly handlerAttempts: Tally;
  /** Duration of handler attempts in seconds, by result (`taken`, `refused`). */
  readonly handlerSeconds: Timings;
  /** Number of responses of the management API. `route` is a path pattern, and `method` is `other` for methods without a route. */
  readonly apiRequests: Counter<"method" | "route" | "status">;
  readonly apiRequestSeconds: Histogram<"method" | "route">;
  /** Registers a gauge. Its value is read at each scrape. */
  readonly observe: (name: string, help: string, read: () => number) => void;
  /** Registers a gauge with one label. Its values are read at each scrape, and the label values must be from a closed set. */
  readonly observeBy: (
    name: string,
    help: string,
    label: string,
    read: () => ReadonlyMap<string, number>,
  ) => void;
  /** Registers a gauge with several labels. Its values are read at each scrape, and the caller must limit the number of series. */
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
 * A counter with two labels for frequent use. It keeps plain numbers, because hashing labels in prom-client would cost 10 % of a
 * delivery's CPU time.
 */
export interface Tally {
  readonly add: (first: string, second: string, count?: number) => void;
}

/**
 * Creates metrics in a separate registry. `includeProcessMetrics` adds Node's own metrics, whose event loop timer runs until the
 * process exits.
 */
export function createMetrics({
  includeProcessMetrics = false,
  channels = 100,
}: {
  readonly includeProcessMetrics?: boolean;
  /** Maximum number of channels with their own time series. */
  readonly channels?: number;
} = {}): Metrics {
  const registry = new Registry();
  if (includeProcessMetrics) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const channelCounter = createChannelCounter({ maxShown: channels, nowMs: () => performance.now() });
  new Counter({
    name: "inlet_channel_deliveries_total",
    help: "Deliveries by result, for each of the busiest channels and for all others combined",
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
    help: "Items by outcome, for each of the busiest channels and for all others combined",
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
      help: "Time from the headers of a hook request to its response, by outcome",
      label: "outcome",
      registers,
    }),
    deliveries: createTally({
      name: "inlet_deliveries_total",
      help: "Deliveries by result",
      labelNames: ["kind", "result"],
      registers,
    }),
    events: createTally({
      name: "inlet_events_total",
      help: "Published events and duplicates",
      labelNames: ["kind", "status"],
      registers,
    }),
    quarantined: createTally({
      name: "inlet_quarantined_total",
      help: "Quarantined items by reason",
      labelNames: ["kind", "reason"],
      registers,
    }),
    recordsDropped: createTally({
      name: "inlet_delivery_records_dropped_total",
      help: "Delivery records that were dropped, by cause",
      labelNames: ["kind", "cause"],
      registers,
    }),
    trimmedOverLimit: new Counter({
      name: "inlet_trimmed_over_limit_total",
      help: "Entries trimmed, whether read or not, from organizations over their storage limit that chose to trim",
      registers,
    }),
    shadowed: createTally({
      name: "inlet_shadowed_total",
      help: "Deliveries accepted in shadow mode although verification failed, by reason",
      labelNames: ["kind", "reason"],
      registers,
    }),
    publishSeconds: createTimings({
      name: "inlet_publish_duration_seconds",
      help: "Time from sending a publish script call to Redis until its reply",
      registers,
    }),
    schemaCompileSeconds: createTimings({
      name: "inlet_schema_compile_duration_seconds",
      help: "Time until a schema that is not in memory is compiled or rejected, including waiting",
      label: "result",
      registers,
    }),
    polls: createTally({
      name: "inlet_polls_total",
      help: "Polls by result",
      labelNames: ["kind", "result"],
      registers,
    }),
    pollLagSeconds: new Histogram({
      name: "inlet_poll_lag_seconds",
      help: "Delay between the due time of a poll and its start",
      buckets: [...SECONDS, 10, 30, 60, 300],
      registers,
    }),
    sourceRuns: createTally({
      name: "inlet_source_runs_total",
      help: "Connections and polls of sources, by how they ended",
      labelNames: ["kind", "end"],
      registers,
    }),
    handlerAttempts: createTally({
      name: "inlet_handler_attempts_total",
      help: "Handler attempts by result",
      labelNames: ["result", "status"],
      registers,
    }),
    handlerSeconds: createTimings({
      name: "inlet_handler_duration_seconds",
      help: "Duration of handler attempts, from the request to the end of the response",
      label: "result",
      buckets: [...SECONDS, 10, 30],
      registers,
    }),
    sourceReconnects: new Counter({
      name: "inlet_source_reconnects_total",
      help: "Streams that were opened again after an end, a failure or a handover",
      labelNames: ["kind"],
      registers,
    }),
    rejectedSourceWrites: createTally({
      name: "inlet_source_refusals_total",
      help: "Source writes rejected because another worker took over or the cursor had already moved",
      labelNames: ["kind", "cause"],
      registers,
    }),
    apiRequests: new Counter({
      name: "inlet_api_requests_total",
      help: "Management API responses by route",
      labelNames: ["method", "route", "status"],
      registers,
    }),
    apiRequestSeconds: new Histogram({
      name: "inlet_api_request_duration_seconds",
      help: "Time from a management API request to its response",
      labelNames: ["method", "route"],
      buckets: SECONDS,
      registers,
    }),
    observe: (name, help, read) => {
      new Gauge({ name, help, registers, collect: createGaugeReader(read) });
    },
    observeBy: (name, help, label, read) => {
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect: createLabeledGaugeReader(label, read),
      });
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
