import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { createBatchRequest, readRejected } from "../event/batch-request.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import { createHandlerRequest, type DeliveredEvent, type HandlerRequest } from "../event/handler-request.ts";
import type { Clock } from "../lib/clock.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import { type CredentialsOf, NeedsReauthError } from "../net/credentials.ts";
import { type Outbound, OutboundError, type OutboundResponse } from "../net/outbound.ts";
import { notBeforeOf } from "../net/retry-after.ts";
import type { Tracing } from "../tracing/tracing.ts";
import type { CreateAgentEvent } from "./agents.ts";
import { startAttemptSpan } from "./attempt-span.ts";

interface Traced {
  /** `undefined` if the request is not sampled. */
  readonly traceId?: string | undefined;
}

/** Result of one request to a handler. `isGone` means that the handler responded with 410 Gone and wants no more events. */
export type AttemptResult = Traced & Sent;

type Sent =
  | {
      readonly kind: "taken";
      readonly attempt: HandlerAttempt;
      /** Events that the response to a batch lists as failed. */
      readonly rejected: ReadonlySet<DeliveredEvent>;
    }
  | {
      readonly kind: "refused";
      readonly attempt: HandlerAttempt;
      readonly isGone: boolean;
      /** Whether the handler will never accept the event, so that it must not be sent again. */
      readonly isFinal: boolean;
      /** Earliest time of the next attempt, if the handler's response requested a wait. */
      readonly notBeforeMs: number | undefined;
    };

/**
 * Sends events to their handler in one request. Several events require a handler with `batch`. Returns failures of the handler, and rejects
 * only if `signal` aborts.
 */
export type Attempt = (
  subscription: HandledSubscription,
  events: readonly DeliveredEvent[],
  options: { readonly signal: AbortSignal },
) => Promise<AttemptResult>;

/** Maximum size of a handler's response in bytes. A small limit is enough, because the body of this response is ignored. */
const MAX_ANSWER_BYTES = 64 * 1024;
/** Maximum size of the response to a batch in bytes. It can list all events of the batch. */
const MAX_BATCH_ANSWER_BYTES = 1024 * 1024;
const NONE: ReadonlySet<DeliveredEvent> = new Set();

/** Responses of an agent to an event that is too large for it, so that it will reject it each time (SEP-3415, webhook delivery). */
const TOO_LARGE = 413;

export interface AttemptDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
  readonly clock: Clock;
  /** Builds the requests to agents. */
  readonly createAgentEvent: CreateAgentEvent;
  /** `undefined` if the gateway exports no traces. */
  readonly tracing?: Tracing | undefined;
}

export function createAttempt({
  outbound,
  credentialsOf,
  clock,
  createAgentEvent,
  tracing,
}: AttemptDeps): Attempt {
  function createRequest(
    subscription: HandledSubscription,
    events: readonly DeliveredEvent[],
  ): HandlerRequest {
    const { id, handler, secret, agent } = subscription;
    const options = { url: handler.url, secret, subscriptionId: id, atMs: clock() };
    const [event] = events;
    if (handler.batch !== undefined || event === undefined) return createBatchRequest(events, options);
    return agent === undefined
      ? createHandlerRequest(event, options)
      : createAgentEvent(subscription, agent, event);
  }

  async function call(
    subscription: HandledSubscription,
    events: readonly DeliveredEvent[],
    signal: AbortSignal,
    traceparent: string | undefined,
  ): Promise<OutboundResponse> {
    const { timeoutMs, connectionId, batch } = subscription.handler;
    const created = createRequest(subscription, events);
    const plain =
      traceparent === undefined ? created : { ...created, headers: { ...created.headers, traceparent } };
    const maxBytes = batch === undefined ? MAX_ANSWER_BYTES : MAX_BATCH_ANSWER_BYTES;
    const limits = { signal, totalTimeoutMs: timeoutMs, maxBytes, maxRedirects: 0 };
    if (connectionId === null) return outbound.request(plain, limits);
    const credentials = credentialsOf(connectionId);
    const authorized = await credentials.authorize(plain, { signal });
    const response = await outbound.request(authorized.request, limits);
    if (response.status !== 401 || !(await credentials.renew(authorized, { signal }))) return response;
    return outbound.request((await credentials.authorize(plain, { signal })).request, limits);
  }

  return async (subscription, events, { signal }) => {
    const span = tracing && startAttemptSpan(tracing, subscription, events);
    const result = await send(subscription, events, signal, span?.traceparent);
    if (span === undefined) return result;
    span.end(result.attempt, result.kind === "taken");
    return { ...result, traceId: span.traceId };
  };

  async function send(
    subscription: HandledSubscription,
    events: readonly DeliveredEvent[],
    signal: AbortSignal,
    traceparent: string | undefined,
  ): Promise<Sent> {
    const startedAtMs = clock();
    const since = performance.now();
    const attempt = (status: number | null, code: string): HandlerAttempt => ({
      at: formatTimestamp(startedAtMs),
      status,
      code,
      durationMs: Math.round(performance.now() - since),
    });
    try {
      const { status, headers, body } = await call(subscription, events, signal, traceparent);
      if (status >= 200 && status < 300) {
        const rejected = subscription.handler.batch === undefined ? NONE : readRejected(body, events);
        if (rejected !== undefined) return { kind: "taken", attempt: attempt(status, "ok"), rejected };
        return { ...FAILED, attempt: attempt(status, "batchResponse") };
      }
      const notBeforeMs = notBeforeOf({ status, headers }, clock());
      const isFinal = subscription.agent !== undefined && status === TOO_LARGE;
      return {
        kind: "refused",
        attempt: attempt(status, "http"),
        isGone: status === 410,
        isFinal,
        notBeforeMs,
      };
    } catch (error) {
      signal.throwIfAborted();
      return { ...FAILED, attempt: attempt(null, codeOf(error)) };
    }
  }
}

/** A failure after which the events are sent again. */
const FAILED = { kind: "refused", isGone: false, isFinal: false, notBeforeMs: undefined } as const;

function codeOf(error: unknown): string {
  if (error instanceof OutboundError) return error.code;
  if (error instanceof NeedsReauthError) return "needsReauth";
  return error instanceof UnavailableError ? "unavailable" : "internal";
}
