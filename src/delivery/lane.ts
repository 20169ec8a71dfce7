import type { RedisBus } from "../bus/connection/redis.ts";
import { runEngine } from "../consumer/engine.ts";
import type { DeliveredEntry } from "../consumer/in-flight-window.ts";
import { readOptions } from "../consumer/options.ts";
import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import { isTestEvent, readAttributes } from "../event/cloud-event.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { DeliveredEvent } from "../event/handler-request.ts";
import { type Clock, formatTimestamp } from "../lib/clock.ts";
import { createLimiter } from "../lib/limiter.ts";
import { sleep } from "../lib/sleep.ts";
import type { Log } from "../log.ts";
import type { Attempt, AttemptResult } from "./attempt.ts";
import { type Breaker, createBreaker } from "./breaker.ts";
import { createFailureNotes } from "./failure-notes.ts";
import type { RetryQueue } from "./retry-queue.ts";

export interface LaneDeps {
  readonly redis: Pick<RedisBus, "call" | "isCluster">;
  readonly attempt: Attempt;
  readonly retries: Pick<RetryQueue, "add">;
  /** Before the n-th attempt at an event, in ms. */
  readonly backoffMs: (attempts: number) => number;
  readonly onFailing: (subscription: HandledSubscription, isFailing: boolean) => void;
  /** Keeps a failed attempt where the subscription shows it. */
  readonly writeError: (id: string, attempt: HandlerAttempt) => Promise<void>;
  /** The handler said that it is gone. */
  readonly onGone: (subscription: HandledSubscription) => Promise<void>;
  readonly onDead: (
    subscription: HandledSubscription,
    event: DeliveredEvent,
    attempts: readonly HandlerAttempt[],
  ) => Promise<void>;
  readonly observe: (result: AttemptResult) => void;
  readonly clock: Clock;
  readonly log: Log;
  readonly timing: { readonly deadAfterMs: number; readonly breakerMs: number };
}

/** One subscription's events on their way to its handler, in this gateway. Disposal lets attempts under way end. */
export interface Lane extends AsyncDisposable {
  readonly subscription: HandledSubscription;
  readonly breaker: Breaker;
  /** Attempts under way that were asked for by `send`. */
  readonly sending: () => number;
  readonly send: (event: DeliveredEvent, options: { readonly signal: AbortSignal }) => Promise<AttemptResult>;
  /** There may be something to read. */
  readonly wake: () => void;
}

/** An ordered topic waits for one event no longer than about an hour: so many attempts, at most a minute apart. */
const ORDERED_ATTEMPTS = 66;
const ORDERED_RETRY = { initialMs: 1_000, maxMs: 60_000, factor: 2, jitter: 0.25 };
const STOP_TIMEOUT_MS = 5_000;

/** Reads the subscription's group while it is active: the first attempt is made with the entry as read, and only a failure is stored. */
export function startLane(subscription: HandledSubscription, deps: LaneDeps): Lane {
  const { attempt, retries, backoffMs, onFailing, onGone, onDead, observe, clock, timing } = deps;
  const { handler, id } = subscription;
  const log = deps.log.child({ subscription: id });
  const stopping = new AbortController();
  const breaker = createBreaker({
    firstWaitMs: timing.breakerMs,
    onChange(isOpen) {
      if (isOpen) log.warn({ event: "handler.failing" }, "a handler takes nothing");
      else log.info({ event: "handler.recovered" }, "a handler takes events again");
      onFailing(subscription, isOpen);
    },
  });
  const failures = createFailureNotes({ write: (failed) => deps.writeError(id, failed), log });
  /** Of ordered topics: the attempts so far at the event that holds its topic back. */
  const tried = new Map<string, { readonly entryId: string; readonly attempts: readonly HandlerAttempt[] }>();
  /** First attempts and later ones together. */
  const places = createLimiter(handler.concurrency);
  let sending = 0;
  let wake: () => void = () => {};

  async function sendOnce(event: DeliveredEvent, signal: AbortSignal): Promise<AttemptResult> {
    let result: AttemptResult | undefined;
    try {
      using _ = await places.acquire(1, { signal });
      result = await attempt(subscription, event, { signal });
    } finally {
      // The breaker's trial call must not leave the others waiting.
      if (result?.kind === "taken") breaker.noteTaken();
      else breaker.noteRefused();
    }
    observe(result);
    if (result.kind === "refused") failures.note(result.attempt);
    if (result.kind === "refused" && result.isGone) await onGone(subscription);
    return result;
  }

  async function handle(entry: DeliveredEntry): Promise<void> {
    const { topic, entryId, fields, signal } = entry;
    if (!handler.testEvents && isTestEvent(fields)) return;
    const event = { topic, entryId, fields };
    if (isAboutItself(subscription, event)) return;
    await breaker.admit({ signal: AbortSignal.any([signal, stopping.signal]) });
    const result = await sendOnce(event, signal);
    if (result.kind === "taken") {
      tried.delete(topic);
      return;
    }
    if (handler.ordered) return holdBack(event, entry.attempt, result);
    const nowMs = clock();
    const delayMs = Math.max(backoffMs(1), (result.notBeforeMs ?? 0) - nowMs);
    await retries.add(
      { ...event, subscriptionId: id, firstAtMs: nowMs, attempts: [result.attempt] },
      delayMs,
    );
  }

  /** @throws Error while the event is to be tried again */
  async function holdBack(
    event: DeliveredEvent,
    attempts: number,
    result: Extract<AttemptResult, { kind: "refused" }>,
  ): Promise<void> {
    const { topic, entryId } = event;
    const before = tried.get(topic);
    const own = before?.entryId === entryId ? before.attempts : [];
    const all = [...own, result.attempt].slice(-ORDERED_ATTEMPTS);
    tried.set(topic, { entryId, attempts: all });
    if (attempts < ORDERED_ATTEMPTS) {
      throw new Error(`the handler did not take it (${result.attempt.status ?? result.attempt.code})`);
    }
    await onDead(subscription, event, all);
    tried.delete(topic);
  }

  const settings = readOptions({
    redis: "of the gateway",
    subscription: id,
    concurrency: handler.concurrency,
    ordered: handler.ordered,
    maxAttempts: 1_000_000,
    retry: handler.ordered ? ORDERED_RETRY : {},
    deadAfterMs: timing.deadAfterMs,
    stopTimeoutMs: STOP_TIMEOUT_MS,
    onProblem: (problem) => {
      if (problem.kind === "redis") {
        log.debug({ event: "handler.not_read", err: problem.error }, "a handler's events cannot be read");
      }
      if (problem.kind === "lost") {
        log.warn(
          { event: "handler.events_lost", ...problem },
          "events were trimmed before a handler had them",
        );
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
          log.error({ event: "handler.reader_ended", err }, "a handler's events are read no more");
        });

  return {
    subscription,
    breaker,
    sending: () => sending,
    async send(event, { signal }) {
      if (isAboutItself(subscription, event)) return skipped(clock());
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

/** A handler is not told of its own problems: it would fail at them, and be told of that. */
const isAboutItself = ({ isOfSystem, id }: HandledSubscription, { fields }: DeliveredEvent): boolean =>
  isOfSystem && readAttributes(fields).attributes.subject === id;

const skipped = (nowMs: number): AttemptResult => ({
  kind: "taken",
  attempt: { at: formatTimestamp(nowMs), status: null, code: "skipped", durationMs: 0 },
});
