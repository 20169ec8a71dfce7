import type { RedisBus } from "../bus/connection/redis.ts";
import { runEngine } from "../consumer/engine.ts";
import type { DeliveredEntry } from "../consumer/in-flight.ts";
import { readOptions } from "../consumer/options.ts";
import type { ConsumerProblem } from "../consumer/problems.ts";
import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { isTestEvent, readAttributes } from "../event/cloud-event.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { type Clock, formatTimestamp } from "../lib/clock.ts";
import { sleep } from "../lib/sleep.ts";
import { FairLimiter } from "../limits/fairness.ts";
import type { Log } from "../log.ts";
import type { Attempt, AttemptResult } from "./attempt.ts";
import { createAttemptHistory } from "./attempt-history.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import { createFailureNotes } from "./failure-notes.ts";
import type { Filter } from "./filter.ts";
import type { GapWatch } from "./gap-watch.ts";
import type { RetryQueue } from "./retry-queue.ts";

export interface LaneDeps {
  readonly redis: Pick<RedisBus, "call" | "isCluster">;
  readonly attempt: Attempt;
  readonly filter: Filter;
  readonly retries: Pick<RetryQueue, "add">;
  /** Returns the delay before the next attempt, in ms. `attempts` is the number of failed attempts. */
  readonly backoffMs: (attempts: number) => number;
  readonly onFailing: (subscription: HandledSubscription, isFailing: boolean) => void;
  readonly writeError: (id: string, attempt: HandlerAttempt) => Promise<void>;
  /** Called when the handler responds with 410 Gone. */
  readonly onGone: (subscription: HandledSubscription) => Promise<void>;
  readonly onDead: (
    subscription: HandledSubscription,
    event: DeliveredEvent,
    attempts: readonly HandlerAttempt[],
  ) => Promise<void>;
  /** Called when retention trimmed events before they were sent. */
  readonly onLost: (subscription: HandledSubscription, lost: LostEvents) => void;
  /** Returns `undefined` for a handler that is not notified of removed events. */
  readonly watchGaps: (subscription: HandledSubscription) => GapWatch | undefined;
  readonly observe: (result: AttemptResult) => void;
  /** Called for each event that the subscription's `when` excludes. It is acknowledged without a request. */
  readonly onIgnored: () => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing: { readonly deadAfterMs: number; readonly breakerMs: number };
}

/**
 * Result of delivering an event. `ignored` means that the handler does not get the event. `undecided` means that the subscription's `when`
 * could not be evaluated, so the event must become a dead letter.
 */
export type DeliveryResult =
  | AttemptResult
  | { readonly kind: "ignored" }
  | { readonly kind: "undecided"; readonly attempt: HandlerAttempt };

export type LostEvents = Extract<ConsumerProblem, { readonly kind: "lost" }>;

/** Delivers the events of one subscription to its handler. Disposal waits for attempts in flight. */
export interface Lane extends AsyncDisposable {
  readonly subscription: HandledSubscription;
  readonly breaker: Breaker;
  readonly sending: () => number;
  readonly send: (
    event: DeliveredEvent,
    options: { readonly signal: AbortSignal },
  ) => Promise<DeliveryResult>;
  readonly wake: () => void;
}

/**
 * Maximum number of attempts per ordered event. One event can block its topic or key for about an hour, because attempts are at most a
 * minute apart.
 */
const ORDERED_ATTEMPTS = 66;
const ORDERED_RETRY = { initialMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.25 };
const STOP_TIMEOUT_MS = 5_000;

/** Starts to deliver the events of a subscription, unless it is paused. An event is stored for retries only if its first attempt fails. */
export function startLane(subscription: HandledSubscription, deps: LaneDeps): Lane {
  const { attempt, filter, retries, backoffMs, onFailing, onGone, onDead, observe, clock, timing } = deps;
  const { handler, id } = subscription;
  const log = deps.log.child({ subscription: id });
  const stopping = new AbortController();
  const breaker = createBreaker({
    firstWaitMs: timing.breakerMs,
    onChange(isOpen) {
      if (isOpen) log.warn({ event: "handler.failing" }, "handler is failing");
      else log.info({ event: "handler.recovered" }, "handler has recovered");
      onFailing(subscription, isOpen);
    },
  });
  const noteEntry = deps.watchGaps(subscription);
  const failures = createFailureNotes({ write: (failed) => deps.writeError(id, failed), log });
  const history = createAttemptHistory();
  /** Limits the concurrent calls of the handler, both first attempts and retries. */
  const places = new FairLimiter(handler.concurrency);
  let sending = 0;
  let hasRecovered = false;
  let wake: () => void = () => {};

  async function sendOnce(event: DeliveredEvent, signal: AbortSignal): Promise<AttemptResult> {
    let result: AttemptResult | undefined;
    try {
      using _ = await places.acquire(1, { signal });
      result = await attempt(subscription, event, { signal });
    } finally {
      // An attempt without a result counts as failed. Otherwise other callers would wait forever for the end of the trial call.
      if (result?.kind === "taken") breaker.noteTaken();
      else breaker.recordRejection();
    }
    observe(result);
    if (result.kind === "taken" && !hasRecovered) {
      hasRecovered = true;
      // The stored state may still be that of an earlier lane, whose breaker was open.
      onFailing(subscription, false);
    }
    if (result.kind === "refused") failures.note(result.attempt);
    if (result.kind === "refused" && result.isGone) await onGone(subscription);
    return result;
  }

  /** Returns the result of an event that is not sent. Returns `undefined` if the event must be sent. */
  async function findUnsent(
    event: DeliveredEvent,
    signal: AbortSignal,
  ): Promise<Exclude<DeliveryResult, AttemptResult> | undefined> {
    if (isAboutItself(subscription, event)) return IGNORED;
    const result = await filter(subscription, event, { signal });
    if (result === "wanted") return undefined;
    if (result === "ignored") {
      deps.onIgnored();
      return IGNORED;
    }
    const failed = { at: formatTimestamp(clock()), status: null, code: "filterFailed", durationMs: 0 };
    failures.note(failed);
    return { kind: "undecided", attempt: failed };
  }

  async function handle(entry: DeliveredEntry): Promise<void> {
    const { topic, entryId, fields, signal } = entry;
    await noteEntry?.(topic, entryId);
    if (!handler.testEvents && isTestEvent(fields)) return;
    const event = { topic, entryId, fields };
    const unsent = await findUnsent(event, signal);
    if (unsent !== undefined) {
      if (unsent.kind === "undecided") await onDead(subscription, event, [unsent.attempt]);
      return;
    }
    await breaker.admit({ signal: AbortSignal.any([signal, stopping.signal]) });
    const result = await sendOnce(event, signal);
    if (result.kind === "taken") return history.forget(event);
    if (result.isFinal) {
      history.forget(event);
      return onDead(subscription, event, [result.attempt]);
    }
    if (handler.ordered !== false) return holdBack(event, entry.attempt, result);
    const nowMs = clock();
    const delayMs = Math.max(backoffMs(1), (result.notBeforeMs ?? 0) - nowMs);
    await retries.add(
      { ...event, subscriptionId: id, firstAtMs: nowMs, attempts: [result.attempt] },
      delayMs,
    );
  }

  /**
   * Notes a failed attempt at an ordered event. After the last attempt, the event becomes a dead letter.
   *
   * @throws Error if the event must be retried
   */
  async function holdBack(
    event: DeliveredEvent,
    attempts: number,
    result: Extract<AttemptResult, { kind: "refused" }>,
  ): Promise<void> {
    const all = history.add(event, result.attempt);
    if (attempts < ORDERED_ATTEMPTS) {
      throw new Error(`the handler failed (${result.attempt.status ?? result.attempt.code})`);
    }
    await onDead(subscription, event, all);
    history.forget(event);
  }

  const settings = readOptions({
    redis: "of the gateway",
    subscription: id,
    concurrency: handler.concurrency,
    ordered: handler.ordered,
    maxAttempts: 1_000_000,
    retry: handler.ordered === false ? {} : ORDERED_RETRY,
    deadAfterMs: timing.deadAfterMs,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onProblem: (problem) => {
      if (problem.kind === "redis") {
        log.debug({ event: "handler.not_read", err: problem.error }, "a handler's events cannot be read");
      }
      if (problem.kind === "lost") {
        log.warn(
          { event: "handler.events_lost", ...problem },
          "retention trimmed events before they reached their handler",
        );
        deps.onLost(subscription, problem);
      }
    },
  });
  const reading =
    subscription.state === "paused"
      ? undefined
      : runEngine({
          settings,
          connection: {
            isCluster: deps.redis.isCluster,
            call: (command, args) => deps.redis.call(command, args),
          },
          idle(ms, signal) {
            const woken = new AbortController();
            wake = () => woken.abort();
            return sleep(ms, AbortSignal.any([signal, woken.signal]));
          },
          handler: handle,
          signal: stopping.signal,
        }).catch((err: unknown) => {
          log.error({ event: "handler.reader_ended", err }, "the reader of a handler's events stopped");
        });

  return {
    subscription,
    breaker,
    sending: () => sending,
    async send(event, { signal }) {
      const unsent = await findUnsent(event, signal);
      if (unsent !== undefined) return unsent;
      sending++;
      try {
        return await sendOnce(event, signal);
      } finally {
        sending--;
      }
    },
    wake: () => wake(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      wake();
      await reading;
      await failures[Symbol.asyncDispose]();
    },
  };
}

/** Returns whether an event reports a problem of the subscription itself. Sending it to the failing handler would cause an endless loop. */
const isAboutItself = ({ isOfSystem, id }: HandledSubscription, { fields }: DeliveredEvent): boolean =>
  isOfSystem && readAttributes(fields).attributes.subject === id;

const IGNORED = { kind: "ignored" } as const;
