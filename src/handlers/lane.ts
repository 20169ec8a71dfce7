import type { RedisBus } from "../bus/connection/redis.ts";
import { runEngine } from "../consumer/engine.ts";
import type { DeliveredEntry } from "../consumer/in-flight.ts";
import { readOptions } from "../consumer/options.ts";
import type { ConsumerProblem } from "../consumer/problems.ts";
import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { EMPTY_BATCH_BYTES, sizeInBatch } from "../event/batch-request.ts";
import { isTestEvent, readAttributes } from "../event/cloud-event.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { type Clock, formatTimestamp } from "../lib/clock.ts";
import { sleep } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { AttemptResult } from "./attempt.ts";
import { createAttemptHistory } from "./attempt-history.ts";
import type { Breaker } from "./breaker.ts";
import { type Calls, type CallsDeps, createCalls, resultFor } from "./calls.ts";
import { createFailureNotes } from "./failure-notes.ts";
import type { Filter } from "./filter.ts";
import type { GapWatch } from "./gap-watch.ts";
import type { RetryQueue } from "./retry-queue.ts";

export interface LaneDeps extends Pick<CallsDeps, "attempt" | "onFailing" | "onGone" | "observe"> {
  readonly redis: Pick<RedisBus, "call" | "isCluster">;
  readonly filter: Filter;
  readonly retries: Pick<RetryQueue, "add">;
  /** Returns the delay before the next attempt, in ms. `attempts` is the number of failed attempts. */
  readonly backoffMs: (attempts: number) => number;
  readonly writeError: (id: string, attempt: HandlerAttempt) => Promise<void>;
  readonly onDead: (
    subscription: HandledSubscription,
    event: DeliveredEvent,
    attempts: readonly HandlerAttempt[],
  ) => Promise<void>;
  /** Called when retention trimmed events before they were sent. */
  readonly onLost: (subscription: HandledSubscription, lost: LostEvents) => void;
  /** Returns `undefined` for a handler that is not notified of removed events. */
  readonly watchGaps: (subscription: HandledSubscription) => GapWatch | undefined;
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
  const { filter, retries, backoffMs, onDead, clock, timing } = deps;
  const { handler, id } = subscription;
  const log = deps.log.child({ subscription: id });
  const stopping = new AbortController();
  const noteEntry = deps.watchGaps(subscription);
  const failures = createFailureNotes({ write: (failed) => deps.writeError(id, failed), log });
  const history = createAttemptHistory();
  const calls: Calls = createCalls(subscription, { ...deps, failures, breakerMs: timing.breakerMs, log });
  let sending = 0;
  let wake: () => void = () => {};

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

  /** Returns true if an event must be sent. Otherwise, the event has been handled. */
  async function mustSend(entry: DeliveredEntry, signal: AbortSignal): Promise<boolean> {
    const { topic, entryId, fields } = entry;
    await noteEntry?.(topic, entryId);
    if (!handler.testEvents && isTestEvent(fields)) return false;
    const unsent = await findUnsent(entry, signal);
    if (unsent?.kind === "undecided") await onDead(subscription, toEvent(entry), [unsent.attempt]);
    return unsent === undefined;
  }

  async function handle(entry: DeliveredEntry): Promise<void> {
    if (!(await mustSend(entry, entry.signal))) return;
    await calls.breaker.admit({ signal: AbortSignal.any([entry.signal, stopping.signal]) });
    const event = toEvent(entry);
    await conclude(event, entry.attempt, await calls.send([event], entry.signal));
  }

  /** Sends several events in one request, and returns the ones that failed. */
  async function handleBatch(
    entries: readonly DeliveredEntry[],
  ): Promise<ReadonlyMap<DeliveredEntry, unknown>> {
    const signal = whenAllAborted(entries);
    const isSent = await Promise.all(entries.map((entry) => mustSend(entry, signal)));
    const sent = entries.filter((_, index) => isSent[index]);
    const failures = new Map<DeliveredEntry, unknown>();
    if (sent.length === 0) return failures;
    await calls.breaker.admit({ signal: AbortSignal.any([signal, stopping.signal]) });
    const events = sent.map(toEvent);
    const result = await calls.send(events, signal);
    for (const [index, entry] of sent.entries()) {
      const event = events[index] ?? toEvent(entry);
      await conclude(event, entry.attempt, resultFor(event, result)).catch((error: unknown) =>
        failures.set(entry, error),
      );
    }
    return failures;
  }

  /** @throws Error if the event must be delivered again */
  async function conclude(event: DeliveredEvent, attempts: number, result: AttemptResult): Promise<void> {
    if (result.kind === "taken") return history.forget(event);
    if (result.isFinal) {
      history.forget(event);
      return onDead(subscription, event, [result.attempt]);
    }
    if (handler.ordered !== false) return holdBack(event, attempts, result);
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
          batching: handler.batch && {
            ...handler.batch,
            maxBytes: handler.batch.maxBytes - EMPTY_BATCH_BYTES,
            sizeOf: sizeInBatch,
            handler: handleBatch,
          },
          signal: stopping.signal,
        }).catch((err: unknown) => {
          log.error({ event: "handler.reader_ended", err }, "the reader of a handler's events stopped");
        });

  return {
    subscription,
    breaker: calls.breaker,
    sending: () => sending,
    async send(event, { signal }) {
      const unsent = await findUnsent(event, signal);
      if (unsent !== undefined) return unsent;
      sending++;
      try {
        return resultFor(event, await calls.send([event], signal));
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

/** Returns a signal that aborts a batch. If only some entries are aborted, the others still wait for the result of the request. */
function whenAllAborted(entries: readonly DeliveredEntry[]): AbortSignal {
  const controller = new AbortController();
  const signals = entries.map(({ signal }) => signal);
  const check = (): void => {
    if (signals.every(({ aborted }) => aborted)) controller.abort();
  };
  for (const signal of signals) signal.addEventListener("abort", check, { once: true });
  check();
  return controller.signal;
}

const toEvent = ({ topic, entryId, fields }: DeliveredEntry): DeliveredEvent => ({ topic, entryId, fields });

/** Returns whether an event reports a problem of the subscription itself. Sending it to the failing handler would cause an endless loop. */
const isAboutItself = ({ isOfSystem, id }: HandledSubscription, { fields }: DeliveredEvent): boolean =>
  isOfSystem && readAttributes(fields).attributes.subject === id;

const IGNORED = { kind: "ignored" } as const;
