import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { TRACE_EXTENSION } from "../event/cloud-event.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { formatTraceparent, parseTraceparent, type TraceContext } from "../lib/traceparent.ts";
import { MESSAGING, TOPIC_TEMPLATE } from "../tracing/messaging.ts";
import { createSpanId, createTraceId, linksTo, type Tracing } from "../tracing/tracing.ts";

/** The span of one request to a handler. It is recorded when the request ends. */
export interface AttemptSpan {
  readonly traceId: string;
  /** Context that the handler receives. */
  readonly traceparent: string;
  readonly end: (attempt: HandlerAttempt, isTaken: boolean) => void;
}

/** Maximum number of links of a span. OpenTelemetry's default limit is the same. */
const MAX_LINKS = 128;

/** Starts a span that links to those that published the events. Returns `undefined` if none of the events was traced. */
export function startAttemptSpan(
  tracing: Tracing,
  { id, organizationId, appId }: HandledSubscription,
  events: readonly DeliveredEvent[],
): AttemptSpan | undefined {
  const links = linksTo(...events.map(findPublishingSpan)).slice(0, MAX_LINKS);
  if (links.length === 0) return undefined;
  const ids = { traceId: createTraceId(), spanId: createSpanId() };
  const startMs = performance.now();
  return {
    traceId: ids.traceId,
    traceparent: formatTraceparent(ids),
    end({ status, code }, isTaken) {
      tracing.record({
        ...ids,
        name: `process ${TOPIC_TEMPLATE}`,
        kind: "consumer",
        parentSpanId: undefined,
        links,
        startMs,
        endMs: performance.now(),
        attributes: {
          ...MESSAGING,
          "messaging.operation.name": "process",
          "messaging.operation.type": "process",
          "messaging.destination.template": TOPIC_TEMPLATE,
          "messaging.destination.subscription.name": id,
          "messaging.batch.message_count": events.length,
          "inlet.organization.id": organizationId,
          "inlet.app.id": appId,
          ...(status !== null && { "http.response.status_code": status }),
          ...(!isTaken && { "error.type": code }),
        },
        isFailed: !isTaken,
      });
    },
  };
}

/** Returns the context in the gateway's own extension. A sender could set the attribute `traceparent` to decide which calls are traced. */
function findPublishingSpan({ fields }: DeliveredEvent): TraceContext | undefined {
  // Searches from the end, because extension attributes come last.
  for (let at = fields.length - 2; at >= 0; at -= 2)
    if (fields[at] === TRACE_EXTENSION) return parseTraceparent(fields[at + 1]);
  return undefined;
}
