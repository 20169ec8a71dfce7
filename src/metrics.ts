import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import {
  type ChannelCounts,
  createChannelCounter,
  DELIVERY_RESULTS,
  EVENT_OUTCOMES,
} from "./metrics/channel-counts.ts";
import { createEventCounts, type TakenCounts } from "./metrics/event-counts.ts";
import { createTally, createTimings, SECONDS } from "./metrics/frequent-metrics.ts";
import { type MetricsFormat, renderOpenMetrics } from "./metrics/open-metrics.ts";

/**
 * The gateway's metrics. All label values come from closed sets, never from event types or paths, to limit the number of series.
 *
 * Ids are labels only for a bounded number of channels, subscriptions and organizations.
 */
export type Metrics = ReturnType<typeof createMetrics>;

export const METRICS_CONTENT_TYPES: Readonly<Record<MetricsFormat, string>> = {
  prometheus: Registry.PROMETHEUS_CONTENT_TYPE,
  openMetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/**
 * How several processes of one machine export a gauge. `max` and `min` describe the machine or its stores, so that one value is exported.
 * `sum` describes the process, so that each process has its own value.
 */
type GaugeAggregator = "max" | "min" | "sum";

export interface Figure<L extends string = string> {
  readonly labels: Readonly<Record<L, string>>;
  readonly value: number;
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
} = {}) {
  const registry = new Registry();
  if (includeProcessMetrics) collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const tally = (name: string, help: string, labelNames: readonly [string, string]) =>
    createTally({ name, help, labelNames, registers });

  /** Registers a gauge with labels. Its values are read at each scrape, and the caller must limit the number of series. */
  function observeEach<L extends string>(
    name: string,
    help: string,
    labels: readonly L[],
    read: () => Iterable<Figure<L>>,
    aggregator: GaugeAggregator = "max",
  ): void {
    new Gauge({
      name,
      help,
      aggregator,
      labelNames: [...labels],
      registers,
      collect() {
        this.reset();
        for (const figure of read()) this.set(figure.labels, figure.value);
      },
    });
  }

  const channelCounter = createChannelCounter({ maxShown: channels, nowMs: () => performance.now() });
  let storeCounts: (taken: TakenCounts) => void = () => {};
  const eventCounts = createEventCounts((taken) => {
    for (const counts of taken.channels) channelCounter.add(counts);
    storeCounts(taken);
  });
  function countChannels(
    name: string,
    help: string,
    label: string,
    fields: readonly (keyof ChannelCounts)[],
  ) {
    new Counter({
      name,
      help,
      labelNames: ["app", "channel", label],
      registers,
      collect() {
        this.reset();
        eventCounts.take();
        for (const { name, counts } of channelCounter.read())
          for (const field of fields)
            this.inc({ app: name.appId, channel: name.uid, [label]: field }, counts[field]);
      },
    });
  }
  countChannels(
    "inlet_channel_deliveries_total",
    "Deliveries by result, for each of the busiest channels and for all others combined",
    "result",
    DELIVERY_RESULTS,
  );
  countChannels(
    "inlet_channel_events_total",
    "Items by outcome, for each of the busiest channels and for all others combined",
    "outcome",
    EVENT_OUTCOMES,
  );
  return {
    registry,
    render: async (format: MetricsFormat): Promise<string> =>
      format === "prometheus" ? registry.metrics() : renderOpenMetrics(await registry.getMetricsAsJSON()),
    countsOf: eventCounts.countsOf,
    handlerCountsOf: eventCounts.handlerCountsOf,
    /** Takes the counts of the event path since the last call. They also appear in the metrics. */
    takeCounts: eventCounts.take,
    /** Sets the function that stores taken counts. */
    storeCountsWith(store: (taken: TakenCounts) => void): void {
      storeCounts = store;
    },
    seriesFlushFailures: new Counter({
      name: "inlet_series_flush_failures_total",
      help: "Failed writes of the counts for the console and the API; each is retried",
      registers,
    }),
    seriesLost: new Counter({
      name: "inlet_series_lost_total",
      help: "Counts that were never stored, because PostgreSQL was unavailable for too long or while the gateway stopped",
      registers,
    }),
    /** Labeled with the outcome: `ok`, `unverified`, `refused`, `unavailable`, `internal`. */
    hookSeconds: createTimings({
      name: "inlet_hook_duration_seconds",
      help: "Time from the headers of a hook request to its response, by outcome",
      label: "outcome",
      registers,
    }),
    /** Labeled with the channel kind and the result: any kind of `IngestResult`, or `refused`, `unavailable`, `internal`. */
    deliveries: tally("inlet_deliveries_total", "Deliveries by result", ["kind", "result"]),
    /** Labeled with the channel kind and the result: `recovered` or `listed`. */
    deliveriesMissed: tally(
      "inlet_deliveries_missed_total",
      "Deliveries that a channel missed and a poll found, by result",
      ["kind", "result"],
    ),
    /** Labeled with the channel kind and the status: `published`, `recovered`, `duplicate` or `ignored`. */
    events: tally("inlet_events_total", "Published events, duplicates and ignored items", ["kind", "status"]),
    /** Labeled with the channel kind and the result: `routed`, or the reason for which the intake holds the item. */
    routedItems: tally("inlet_routed_items_total", "Items that intakes received, by result", [
      "kind",
      "result",
    ]),
    quarantined: tally("inlet_quarantined_total", "Quarantined items by reason", ["kind", "reason"]),
    /** Labeled with the channel kind and the cause: `full`, `late`, `noRoom`, `overLimit`, `unavailable`. */
    recordsDropped: tally(
      "inlet_delivery_records_dropped_total",
      "Delivery records that were dropped, by cause",
      ["kind", "cause"],
    ),
    trimmedOverLimit: new Counter({
      name: "inlet_trimmed_over_limit_total",
      help: "Entries trimmed, whether read or not, from organizations over their storage limit that chose to trim",
      registers,
    }),
    shadowed: tally(
      "inlet_shadowed_total",
      "Deliveries accepted in shadow mode although verification failed, by reason",
      ["kind", "reason"],
    ),
    publishSeconds: createTimings({
      name: "inlet_publish_duration_seconds",
      help: "Time from sending a publish script call to Redis until its reply",
      registers,
    }),
    /** Labeled with the result: `stored`, `compiled`, `refused`. */
    schemaCompileSeconds: createTimings({
      name: "inlet_schema_compile_duration_seconds",
      help: "Time until a schema that is not in memory is compiled or rejected, including waiting",
      label: "result",
      registers,
    }),
    polls: tally("inlet_polls_total", "Polls by result", ["kind", "result"]),
    /** Labeled with the channel kind and the result: `stored` or `coalesced` by the webhook, `ignored` by the polling channel. */
    wakes: tally("inlet_wakes_total", "Wakes of polling channels by result", ["kind", "result"]),
    pollLagSeconds: new Histogram({
      name: "inlet_poll_lag_seconds",
      help: "Delay between the due time of a poll and its start",
      buckets: [...SECONDS, 10, 30, 60, 300],
      registers,
    }),
    sourceRuns: tally("inlet_source_runs_total", "Connections and polls of sources, by how they ended", [
      "kind",
      "end",
    ]),
    /** Labeled with the result (`taken`, `refused`) and status class (`2xx` …, or `none` without a response). */
    handlerAttempts: tally("inlet_handler_attempts_total", "Handler attempts by result", [
      "result",
      "status",
    ]),
    /** Labeled with the result (`taken`, `refused`). */
    handlerSeconds: createTimings({
      name: "inlet_handler_duration_seconds",
      help: "Duration of handler attempts, from the request to the end of the response",
      label: "result",
      buckets: [...SECONDS, 10, 30],
      registers,
    }),
    unsetAttributes: new Counter({
      name: "inlet_event_attributes_unset_total",
      help: "Events without the time, subject or key that their definition reads, because the item has no usable value",
      labelNames: ["kind", "attribute"],
      registers,
    }),
    handlerIgnored: new Counter({
      name: "inlet_handler_ignored_total",
      help: "Events acknowledged without a request, because the `when` of their subscription excludes them",
      registers,
    }),
    /** Labeled with the result: `exported`, `failed`, or `dropped` because the queue was full. */
    spans: new Counter({
      name: "inlet_spans_total",
      help: "Spans for the OpenTelemetry receiver, by result",
      labelNames: ["result"],
      registers,
    }),
    agentSubscriptionsEnded: new Counter({
      name: "inlet_agent_subscriptions_ended_total",
      help: "Subscriptions of agents that ended without `events/unsubscribe`, by reason",
      labelNames: ["reason"],
      registers,
    }),
    registrations: new Counter({
      name: "inlet_registrations_total",
      help: "Changes of registrations at providers, by preset and result",
      labelNames: ["preset", "result"],
      registers,
    }),
    sourceReconnects: new Counter({
      name: "inlet_source_reconnects_total",
      help: "Streams that were opened again after an end, a failure or a handover",
      labelNames: ["kind"],
      registers,
    }),
    /** Labeled with the channel kind and the cause: `epoch` (another worker took over) or `cursor` (the stored cursor has changed). */
    rejectedSourceWrites: tally(
      "inlet_source_refusals_total",
      "Source writes rejected because another worker took over or the cursor had already moved",
      ["kind", "cause"],
    ),
    invalidRequests: new Counter({
      name: "inlet_http_invalid_requests_total",
      help: "Requests rejected before routing, because of malformed HTTP (400, 417), slow arrival (408) or too large headers (431)",
      labelNames: ["status"],
      registers,
    }),
    /** `route` is a path pattern, and `method` is `other` for methods without a route. */
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
    /** Registers a gauge. Its value is read at each scrape. */
    observe: (name: string, help: string, read: () => number, aggregator?: GaugeAggregator): void =>
      observeEach(name, help, [], () => [{ labels: {}, value: read() }], aggregator),
    /** Registers a gauge with one label, whose values must be from a closed set. Its values are read at each scrape. */
    observeBy: (
      name: string,
      help: string,
      label: string,
      read: () => ReadonlyMap<string, number>,
      aggregator?: GaugeAggregator,
    ): void =>
      observeEach(
        name,
        help,
        [label],
        () => [...read()].map(([key, value]) => ({ labels: { [label]: key }, value })),
        aggregator,
      ),
    observeEach,
  };
}
