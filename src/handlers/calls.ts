import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { FairLimiter } from "../limits/fairness.ts";
import type { Log } from "../log.ts";
import type { Attempt, AttemptResult } from "./attempt.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import type { FailureNotes } from "./failure-notes.ts";

export interface CallsDeps {
  readonly attempt: Attempt;
  readonly onFailing: (subscription: HandledSubscription, isFailing: boolean) => void;
  /** Called when the handler responds with 410 Gone. */
  readonly onGone: (subscription: HandledSubscription) => Promise<void>;
  /** Called after each request. `events` are those that it contained. */
  readonly observe: (result: AttemptResult, events: readonly DeliveredEvent[]) => void;
  readonly failures: Pick<FailureNotes, "note">;
  readonly breakerMs: number;
  readonly log: Log;
}

export interface Calls {
  readonly breaker: Breaker;
  /** Sends events to the handler in one request, and reports the result. The circuit breaker must have admitted the call. */
  readonly send: (events: readonly DeliveredEvent[], signal: AbortSignal) => Promise<AttemptResult>;
}

/** Calls one handler. Limits the calls in flight, and stops calling while the handler keeps failing. */
export function createCalls(subscription: HandledSubscription, deps: CallsDeps): Calls {
  const { attempt, onFailing, onGone, observe, failures, log } = deps;
  const breaker = createBreaker({
    firstWaitMs: deps.breakerMs,
    onChange(isOpen) {
      if (isOpen) log.warn({ event: "handler.failing" }, "handler is failing");
      else log.info({ event: "handler.recovered" }, "handler has recovered");
      onFailing(subscription, isOpen);
    },
  });
  /** Limits the concurrent calls of the handler, both first attempts and retries. */
  const places = new FairLimiter(subscription.handler.concurrency);
  let hasRecovered = false;

  async function send(events: readonly DeliveredEvent[], signal: AbortSignal): Promise<AttemptResult> {
    let result: AttemptResult | undefined;
    try {
      using _ = await places.acquire(1, { signal });
      result = await attempt(subscription, events, { signal });
    } finally {
      // An attempt without a result counts as failed. Otherwise other callers would wait forever for the end of the trial call.
      if (result?.kind === "taken") breaker.noteTaken();
      else breaker.recordRejection();
    }
    observe(result, events);
    if (result.kind === "taken" && !hasRecovered) {
      hasRecovered = true;
      // The stored state may still be that of an earlier lane, whose breaker was open.
      onFailing(subscription, false);
    }
    const failed = events.map((event) => resultFor(event, result)).find(({ kind }) => kind === "refused");
    if (failed !== undefined) failures.note(failed.attempt);
    if (result.kind === "refused" && result.isGone) await onGone(subscription);
    return result;
  }

  return { breaker, send };
}

/** Returns the result for one event of a request. An event that the response to a batch lists as failed is refused. */
export function resultFor(event: DeliveredEvent, result: AttemptResult): AttemptResult {
  if (result.kind === "refused" || !result.rejected.has(event)) return result;
  const attempt = { ...result.attempt, code: "rejectedInBatch" };
  return { kind: "refused", attempt, isGone: false, isFinal: false, notBeforeMs: undefined };
}
