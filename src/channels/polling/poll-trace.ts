import { formatTraceparent } from "../../lib/traceparent.ts";
import { type Outbound, OutboundError } from "../../net/outbound.ts";
import { toChannelAttributes } from "../../tracing/messaging.ts";
import { createSpanId, createTraceId, type Tracing } from "../../tracing/tracing.ts";
import type { SourceEnd, SourceRun } from "../source.ts";

/** The spans of one poll: one for all of it, and one for each of its requests. */
export interface PollTrace {
  /** Sends the requests of the poll, and traces each of them. */
  readonly outbound: Pick<Outbound, "request">;
  /** The run, whose traced deliveries link to the span of the poll. */
  readonly run: SourceRun;
  /** @param end `undefined` if the poll was interrupted */
  readonly end: (end: SourceEnd | undefined) => void;
}

/** Starts the trace of a poll. Returns `undefined` if it is not sampled. */
export function startPollTrace(
  tracing: Tracing,
  run: SourceRun,
  outbound: Pick<Outbound, "request">,
): PollTrace | undefined {
  if (!tracing.samplesRoot()) return undefined;
  const context = { traceId: createTraceId(), spanId: createSpanId() };
  const fetchedBy = formatTraceparent(context);
  const channel = toChannelAttributes(run.channel.identity);
  const startMs = performance.now();
  return {
    outbound: {
      async request(request, options) {
        const startedMs = performance.now();
        const record = (status: number | undefined, error: string | undefined): void =>
          tracing.record({
            name: request.method,
            kind: "client",
            traceId: context.traceId,
            spanId: createSpanId(),
            parentSpanId: context.spanId,
            links: [],
            startMs: startedMs,
            endMs: performance.now(),
            attributes: {
              ...channel,
              "http.request.method": request.method,
              ...toServerAttributes(request.url),
              ...(status !== undefined && { "http.response.status_code": status }),
              ...(error !== undefined && { "error.type": error }),
            },
            isFailed: error !== undefined,
          });
        try {
          const response = await outbound.request(request, options);
          const { status } = response;
          record(status, status >= 400 ? String(status) : undefined);
          return response;
        } catch (error) {
          record(undefined, error instanceof OutboundError ? error.code : "interrupted");
          throw error;
        }
      },
    },
    run: { ...run, ingest: (delivery, options) => run.ingest({ ...delivery, fetchedBy }, options) },
    end(end) {
      const { traceId, spanId } = context;
      const error = end !== undefined && "code" in end ? end.code : undefined;
      tracing.record({
        name: `poll ${run.channel.identity.kind}`,
        kind: "internal",
        traceId,
        spanId,
        parentSpanId: undefined,
        links: [],
        startMs,
        endMs: performance.now(),
        attributes: {
          ...channel,
          "inlet.result": end?.kind ?? "interrupted",
          ...(error !== undefined && { "error.type": error }),
        },
        isFailed: end?.kind !== "done" && end?.kind !== "finished",
      });
    },
  };
}

/** Returns the server of a URL. The path and query are left out, because they can contain credentials. */
function toServerAttributes(url: string): Readonly<Record<string, string | number>> {
  const { protocol, hostname, port } = new URL(url);
  return {
    "url.scheme": protocol.slice(0, -1),
    "server.address": hostname,
    "server.port": port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
  };
}
