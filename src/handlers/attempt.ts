import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import { createHandlerRequest, type DeliveredEvent, type HandlerRequest } from "../event/handler-request.ts";
import type { Clock } from "../lib/clock.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import { type CredentialsOf, NeedsReauthError } from "../net/credentials.ts";
import { type Outbound, OutboundError, type OutboundResponse } from "../net/outbound.ts";
import { notBeforeOf } from "../net/retry-after.ts";
import type { CreateAgentEvent } from "./agents.ts";

/** Result of sending an event once. `isGone` means that the handler responded with 410 Gone and wants no more events. */
export type AttemptResult =
  | { readonly kind: "taken"; readonly attempt: HandlerAttempt }
  | {
      readonly kind: "refused";
      readonly attempt: HandlerAttempt;
      readonly isGone: boolean;
      /** Whether the handler will never accept the event, so that it must not be sent again. */
      readonly isFinal: boolean;
      /** Earliest time of the next attempt, if the handler's response requested a wait. */
      readonly notBeforeMs: number | undefined;
    };

/** Sends an event to its handler once. Returns failures of the handler, and rejects only if `signal` aborts. */
export type Attempt = (
  subscription: HandledSubscription,
  event: DeliveredEvent,
  options: { readonly signal: AbortSignal },
) => Promise<AttemptResult>;

/** Maximum size of a handler's response, in bytes. A small limit is enough, because response bodies are ignored. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Responses of an agent to an event that is too large for it, so that it will reject it each time (SEP-3415, webhook delivery). */
const TOO_LARGE = 413;

export interface AttemptDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
  readonly clock: Clock;
  /** Builds the requests to agents. */
  readonly createAgentEvent: CreateAgentEvent;
}

export function createAttempt({ outbound, credentialsOf, clock, createAgentEvent }: AttemptDeps): Attempt {
  function createRequest(subscription: HandledSubscription, event: DeliveredEvent): HandlerRequest {
    const { id, handler, secret, agent } = subscription;
    if (agent !== undefined) return createAgentEvent(subscription, agent, event);
    return createHandlerRequest(event, { url: handler.url, secret, subscriptionId: id, atMs: clock() });
  }

  async function call(
    subscription: HandledSubscription,
    event: DeliveredEvent,
    signal: AbortSignal,
  ): Promise<OutboundResponse> {
    const { timeoutMs, connectionId } = subscription.handler;
    const plain = createRequest(subscription, event);
    const limits = { signal, totalTimeoutMs: timeoutMs, maxBytes: MAX_ANSWER_BYTES, maxRedirects: 0 };
    if (connectionId === null) return outbound.request(plain, limits);
    const credentials = credentialsOf(connectionId);
    const authorized = await credentials.authorize(plain, { signal });
    const response = await outbound.request(authorized.request, limits);
    if (response.status !== 401 || !(await credentials.renew(authorized, { signal }))) return response;
    return outbound.request((await credentials.authorize(plain, { signal })).request, limits);
  }

  return async (subscription, event, { signal }) => {
    const startedAtMs = clock();
    const since = performance.now();
    const attempt = (status: number | null, code: string): HandlerAttempt => ({
      at: formatTimestamp(startedAtMs),
      status,
      code,
      durationMs: Math.round(performance.now() - since),
    });
    try {
      const { status, headers } = await call(subscription, event, signal);
      if (status >= 200 && status < 300) return { kind: "taken", attempt: attempt(status, "ok") };
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
      return {
        kind: "refused",
        attempt: attempt(null, codeOf(error)),
        isGone: false,
        isFinal: false,
        notBeforeMs: undefined,
      };
    }
  };
}

function codeOf(error: unknown): string {
  if (error instanceof OutboundError) return error.code;
  if (error instanceof NeedsReauthError) return "needsReauth";
  return error instanceof UnavailableError ? "unavailable" : "internal";
}
