import type { ChannelConfig } from "../event/channel.ts";
import type { Outcome } from "../event/outcome.ts";
import type { VerifiedDelivery } from "../event/received.ts";
import type { HookExchange } from "../http/hook-exchange.ts";
import { formatTraceparent, parseTraceparent, type TraceContext } from "../lib/traceparent.ts";
import { MESSAGING, TOPIC_TEMPLATE, toChannelAttributes } from "../tracing/messaging.ts";
import type { FinishedSpan, SpanKindName } from "../tracing/span.ts";
import { createSpanId, createTraceId, linksTo, type Tracing } from "../tracing/tracing.ts";
import type { CompiledChannel } from "./compile-channel.ts";

/** Ids of the spans of a sampled delivery. Created before the spans, because the delivery's events and log lines contain them. */
export interface SampledTrace {
  readonly traceId: string;
  /** Id of the span of the whole delivery. */
  readonly spanId: string;
  /** Id of the span that publishes the events. */
  readonly publishSpanId: string;
  /** Id of the sender's span, if the channel trusts the sender. */
  readonly parentSpanId: string | undefined;
  readonly links: readonly TraceContext[];
  readonly startMs: number;
  /** When publishing started, in milliseconds of `performance.now()`. `undefined` before. */
  publishedAtMs: number | undefined;
  /** Context of the span that publishes the events. */
  readonly traceparent: string;
}

export interface SpanResult {
  /** Value from a closed set, as in the metrics. */
  readonly result: string;
  readonly outcome: Outcome | undefined;
  /** `undefined` for a delivery that the gateway fetched. */
  readonly status: number | undefined;
}

export interface TracedRequest {
  readonly exchange: Pick<HookExchange, "method" | "sinceMs">;
  readonly requestId: string;
}

export type DeliverySpans = ReturnType<typeof createDeliverySpans>;

/** Creates the functions that trace deliveries. Spans are created when a delivery ends, with the times at which its steps began. */
export function createDeliverySpans(tracing: Tracing) {
  /** Traces of fetched and redriven deliveries, until they end. */
  const traces = new WeakMap<VerifiedDelivery, SampledTrace>();

  function startRoot(links: readonly TraceContext[]): SampledTrace | undefined {
    return tracing.samplesRoot() ? createTrace({ traceId: createTraceId(), links }) : undefined;
  }

  function startTraced(delivery: VerifiedDelivery, links: readonly TraceContext[]): VerifiedDelivery {
    const started = startRoot(links);
    if (started === undefined) return delivery;
    started.publishedAtMs = started.startMs;
    const traced = { ...delivery, traceparent: started.traceparent };
    traces.set(traced, started);
    return traced;
  }

  /** Records the spans of a delivery: one for all of it, and its child for publishing. */
  function record(
    channel: CompiledChannel,
    started: SampledTrace,
    whole: Pick<FinishedSpan, "name" | "kind" | "attributes">,
    { result, outcome, status }: SpanResult,
  ): void {
    const { traceId, spanId, publishSpanId, parentSpanId, links, startMs, publishedAtMs } = started;
    const endMs = performance.now();
    const isFailed = FAILED.has(result);
    const common = {
      ...toChannelAttributes(channel.identity),
      "inlet.result": result,
      ...(isFailed && { "error.type": result }),
    };
    const delivered: FinishedSpan = {
      ...whole,
      traceId,
      spanId,
      parentSpanId,
      links,
      startMs,
      endMs,
      attributes: {
        ...common,
        ...whole.attributes,
        ...(status !== undefined && { "http.response.status_code": status }),
        ...(outcome && toCounts(outcome)),
      },
      isFailed,
    };
    if (publishedAtMs === undefined) {
      tracing.record(delivered);
      return;
    }
    const child = {
      traceId,
      spanId: publishSpanId,
      parentSpanId: spanId,
      links: [],
      startMs: publishedAtMs,
      endMs,
      isFailed,
    };
    const routed: FinishedSpan = {
      ...child,
      name: `route ${channel.identity.kind}`,
      kind: "internal",
      attributes: common,
    };
    tracing.record(delivered, channel.routes === undefined ? toSendSpan(child, common, outcome) : routed);
  }

  function startChild(delivery: VerifiedDelivery, parent: TraceContext): VerifiedDelivery {
    const { traceId, spanId: parentSpanId } = parent;
    const started = createTrace({ traceId, parentSpanId, links: [] });
    const traced = { ...delivery, traceparent: started.traceparent };
    traces.set(traced, started);
    return traced;
  }

  function endTraced(
    channel: CompiledChannel,
    delivery: VerifiedDelivery,
    operation: "receive" | "redrive",
    kind: SpanKindName,
    result: SpanResult,
  ): void {
    const started = traces.get(delivery);
    if (started === undefined) return;
    traces.delete(delivery);
    const name = `${operation} ${channel.identity.kind}`;
    const attributes = { ...MESSAGING, "messaging.operation.name": operation };
    record(channel, started, { name, kind, attributes }, result);
  }

  return {
    /**
     * Starts the trace of a request to a channel's address. Returns `undefined` if it is not sampled.
     *
     * @param header the request's `traceparent`. The trace only continues that of the sender if the channel trusts the sender.
     */
    startReceive(
      header: string | readonly string[] | undefined,
      config: ChannelConfig,
    ): SampledTrace | undefined {
      if ("trustTrace" in config && config.trustTrace === true) {
        const parent = parseTraceparent(header);
        if (parent === undefined) return startRoot([]);
        if (!tracing.samplesChild(parent)) return undefined;
        return createTrace({ traceId: parent.traceId, parentSpanId: parent.spanId, links: [] });
      }
      return tracing.samplesRoot()
        ? createTrace({ traceId: createTraceId(), links: linksTo(parseTraceparent(header)) })
        : undefined;
    },
    /** Ends the trace of a request. The address is left out, because it is a credential. */
    endReceive(
      channel: CompiledChannel,
      { exchange, requestId }: TracedRequest,
      trace: SampledTrace,
      result: SpanResult,
    ): void {
      const started = { ...trace, startMs: exchange.sinceMs };
      const attributes = {
        "http.request.method": exchange.method,
        "http.route": HOOK_ROUTE,
        "inlet.request.id": requestId,
      };
      record(
        channel,
        started,
        { name: `${exchange.method} ${HOOK_ROUTE}`, kind: "server", attributes },
        result,
      );
    },
    /** Starts the trace of a fetched delivery, unless it is not sampled. Links it to the poll that has fetched it. */
    startFetched({ fetchedBy, ...delivery }: VerifiedDelivery): VerifiedDelivery {
      return startTraced(delivery, linksTo(parseTraceparent(fetchedBy)));
    },
    endFetched: (channel: CompiledChannel, delivery: VerifiedDelivery, result: SpanResult): void =>
      endTraced(channel, delivery, "receive", "consumer", result),
    /** Starts the span that publishes the items of an install, as a part of the trace of the intake's delivery. */
    startRouted(delivery: VerifiedDelivery): VerifiedDelivery {
      const parent = parseTraceparent(delivery.traceparent);
      return parent === undefined ? delivery : startChild(delivery, parent);
    },
    endRouted(channel: CompiledChannel, delivery: VerifiedDelivery, { result, outcome }: SpanResult): void {
      const started = traces.get(delivery);
      if (started === undefined) return;
      traces.delete(delivery);
      const { traceId, publishSpanId: spanId, parentSpanId, links, startMs } = started;
      const span = {
        traceId,
        spanId,
        parentSpanId,
        links,
        startMs,
        endMs: performance.now(),
        isFailed: false,
      };
      const common = { ...toChannelAttributes(channel.identity), "inlet.result": result };
      tracing.record(toSendSpan(span, common, outcome));
    },
    /** Starts the trace of a redrive, with a link to the delivery's first trace. Returns the delivery itself if it is not sampled. */
    startRedrive: (delivery: VerifiedDelivery): VerifiedDelivery =>
      startTraced(delivery, linksTo(parseTraceparent(delivery.traceparent))),
    endRedrive: (channel: CompiledChannel, delivery: VerifiedDelivery, result: SpanResult): void =>
      endTraced(channel, delivery, "redrive", "internal", result),
  };
}

const HOOK_ROUTE = "/hooks/{channelId}";

/** Results that count as errors of the gateway. A rejected delivery is an error of its sender, so its span has no error status. */
const FAILED: ReadonlySet<string> = new Set(["unavailable", "internal"]);

function toSendSpan(
  span: Omit<FinishedSpan, "name" | "kind" | "attributes">,
  attributes: FinishedSpan["attributes"],
  outcome: Outcome | undefined,
): FinishedSpan {
  return {
    ...span,
    name: `send ${TOPIC_TEMPLATE}`,
    kind: "producer",
    attributes: {
      ...attributes,
      ...MESSAGING,
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.template": TOPIC_TEMPLATE,
      ...(outcome && { "messaging.batch.message_count": outcome.published }),
    },
  };
}

function createTrace({
  traceId,
  parentSpanId,
  links,
}: Pick<SampledTrace, "traceId" | "links"> & { readonly parentSpanId?: string }): SampledTrace {
  const publishSpanId = createSpanId();
  return {
    traceId,
    spanId: createSpanId(),
    publishSpanId,
    parentSpanId,
    links,
    startMs: performance.now(),
    publishedAtMs: undefined,
    traceparent: formatTraceparent({ traceId, spanId: publishSpanId }),
  };
}

const toCounts = ({ published, duplicates, ignored, quarantined }: Outcome): FinishedSpan["attributes"] => ({
  "inlet.events.published": published,
  "inlet.events.duplicates": duplicates,
  "inlet.events.ignored": ignored,
  "inlet.events.quarantined": quarantined,
});
