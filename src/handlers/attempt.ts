import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import { createHandlerRequest, type DeliveredEvent } from "../event/handler-request.ts";
import type { Clock } from "../lib/clock.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { UnavailableError } from "../lib/errors.ts";
import { type CredentialsOf, NeedsReauthError } from "../net/credentials.ts";
import { type Outbound, OutboundError, type OutboundResponse } from "../net/outbound.ts";
import { notBeforeOf } from "../net/retry-after.ts";

/** Result of sending an event once. `isGone` means that the handler responded with 410 Gone and wants no more events. */
export type AttemptResult =
  | { readonly kind: "taken"; readonly attempt: HandlerAttempt }
  | {
      readonly kind: "refused";
      readonly attempt: HandlerAttempt;
      readonly isGone: boolean;
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

export interface AttemptDeps {
  readonly outbound: Pick<Outbound, "request">;
  readonly credentialsOf: CredentialsOf;
  readonly clock: Clock;
}

export function createAttempt({ outbound, credentialsOf, clock }: AttemptDeps): Attempt {
  async function call(
    { id, handler, secret }: HandledSubscription,
    event: DeliveredEvent,
    signal: AbortSignal,
  ): Promise<OutboundResponse> {
    const { url, timeoutMs, connectionId } = handler;
    const plain = createHandlerRequest(event, { url, secret, subscriptionId: id, atMs: clock() });
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
      return { kind: "refused", attempt: attempt(status, "http"), isGone: status === 410, notBeforeMs };
    } catch (error) {
      signal.throwIfAborted();
      return {
        kind: "refused",
        attempt: attempt(null, codeOf(error)),
        isGone: false,
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
