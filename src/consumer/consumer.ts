import { type ConsumedEvent, readEvent } from "../event/cloud-event.ts";
import { sleep } from "../lib/sleep.ts";
import { type Commands, createCommands } from "./commands.ts";
import { type Connection, connect } from "./connection.ts";
import { runEngine } from "./engine.ts";
import type { EventOf, EventTypes } from "./event-types.ts";
import type { DeliveredEntry } from "./in-flight.ts";
import { type ConsumerOptions, type ConsumerSettings, readOptions } from "./options.ts";
import { type ConsumerProblem, createErrorReports } from "./problems.ts";

export type { ConsumedEvent, ConsumerOptions, ConsumerProblem, EventOf, EventTypes };

/**
 * Describes the delivery of an event. Your handler gets it as its second argument.
 *
 * @example
 * ```ts
 * await consumer.run(async (event, { topic, attempt, signal }) => {
 *   if (attempt > 1) console.warn(`attempt ${attempt} at ${event.id} of ${topic}`);
 *   await fetch("https://example.com/orders", { method: "POST", body: JSON.stringify(event.data), signal });
 * });
 * ```
 */
export interface DeliveryContext extends DeliveredEntry {
  /** Original text of `data`, with numbers exactly as the sender wrote them. `undefined` if the event has no data or binary data. */
  readonly text: string | undefined;
}

/**
 * Handles one event. When it resolves, the event is acknowledged. When it rejects or throws, the event is delivered again later.
 *
 * @typeParam T type of `event.data`, or data by event type (`EventTypes`). It is not checked at run time.
 * @example
 * ```ts
 * const handler: Handler<{ ref: string }> = async (event) => {
 *   console.log(event.data?.ref);
 * };
 * ```
 */
export type Handler<T = unknown> = (event: EventOf<T>, context: DeliveryContext) => Promise<void> | void;

/**
 * An event from `Consumer.events`, with details about its delivery.
 *
 * @typeParam T type of `event.data`, or data by event type (`EventTypes`). It is not checked at run time.
 */
export interface Delivery<T = unknown> extends DeliveryContext {
  readonly event: EventOf<T>;
  /**
   * Delivers the event again later. Without this call, asking for the next event acknowledges this one.
   *
   * @param reason reported to `onProblem`, and stored if the event becomes a dead letter
   */
  readonly retry: (reason?: unknown) => void;
}

export interface RunOptions {
  /** Stops the consumer when the signal aborts. The consumer then waits up to `stopTimeoutMs` for running handlers. */
  readonly signal?: AbortSignal;
}

/**
 * Reads the events of a subscription from Redis, each at least once.
 *
 * Any number of consumers can share a subscription. If one dies, the others take over its events after `deadAfterMs`.
 *
 * @typeParam T type of `event.data`, or data by event type (`EventTypes`). It is not checked at run time.
 */
export interface Consumer<T = unknown> {
  /**
   * Calls `handler` for each event, and acknowledges the event when the handler resolves.
   *
   * @param handler called for up to `concurrency` events at the same time
   * @returns a promise that resolves after `signal` aborted and the running handlers have finished
   * @throws Error if, at the start, Redis is unreachable or the subscription does not exist. Later, the consumer waits for both.
   * @example
   * ```ts
   * const stop = new AbortController();
   * process.once("SIGTERM", () => stop.abort());
   * await consumer.run((event) => console.log(event.type), { signal: stop.signal });
   * ```
   */
  readonly run: (handler: Handler<T>, options?: RunOptions) => Promise<void>;
  /**
   * Returns an iterator over the events, one at a time. Asking for the next event acknowledges the one before.
   *
   * Leaving the loop stops the consumer. The event of the last iteration is then not acknowledged, and is delivered again.
   *
   * @throws Error like `run`, when you ask for the first event
   * @example
   * ```ts
   * for await (const { event, retry } of consumer.events()) {
   *   if (!(await save(event))) retry();
   * }
   * ```
   */
  readonly events: (options?: RunOptions) => AsyncGenerator<Delivery<T>, void, void>;
}

/**
 * Creates a consumer. It connects to Redis only when you call `run` or `events`.
 *
 * @typeParam T type of `event.data`, or data by event type (`EventTypes`). It is not checked at run time.
 * @param options `redis` and `subscription` are required
 * @throws TypeError that names the invalid option, or all unknown options
 * @example
 * ```ts
 * import { createConsumer } from "inlet-consumer";
 *
 * const consumer = createConsumer<{ ref: string }>({
 *   redis: "redis://127.0.0.1:6379",
 *   subscription: "sub_…",
 *   ordered: true,
 * });
 * await consumer.run((event) => console.log(event.data?.ref));
 * ```
 */
export function createConsumer<T = unknown>(options: ConsumerOptions): Consumer<T> {
  const settings = readOptions(options);
  const run = (handler: Handler<T>, { signal = NEVER_ABORTED }: RunOptions = {}): Promise<void> =>
    consume(settings, handler, signal);
  return {
    run,
    events: ({ signal = NEVER_ABORTED } = {}) =>
      iterate<T>((each, { stop }) => {
        const one = { ...settings, concurrency: 1 };
        return consume(one, each, AbortSignal.any([signal, stop]));
      }),
  };
}

/** A class instead of an object literal, which would create a new getter function for each entry. */
class Context implements DeliveryContext {
  readonly topic: string;
  readonly entryId: string;
  readonly attempt: number;
  readonly fields: readonly string[];
  readonly text: string | undefined;
  readonly #entry: DeliveredEntry;

  constructor(entry: DeliveredEntry, text: string | undefined) {
    this.topic = entry.topic;
    this.entryId = entry.entryId;
    this.attempt = entry.attempt;
    this.fields = entry.fields;
    this.text = text;
    this.#entry = entry;
  }

  get signal(): AbortSignal {
    return this.#entry.signal;
  }
}

const NEVER_ABORTED = new AbortController().signal;
const UNKNOWN_AFTER_MS = 2_000;

async function consume<T>(
  settings: ConsumerSettings,
  handle: Handler<T>,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const onError = (error: unknown): void => settings.onProblem({ kind: "redis", error });
  const open: Connection[] = [];
  try {
    const connection = await connect(settings.redis, onError);
    open.push(connection);
    const commands = createCommands(connection, settings);
    await requireSubscription(settings, commands, signal);
    const report = createErrorReports(commands.reportError);
    const onProblem = (problem: ConsumerProblem): void => {
      report(problem);
      settings.onProblem(problem);
    };
    const blocking = await connect(settings.redis, onError);
    open.push(blocking);
    await runEngine({
      settings: { ...settings, onProblem },
      connection,
      blocking,
      signal,
      handler(entry) {
        const { event, text } = readEvent(entry.fields);
        if (!settings.when(event)) return undefined;
        return handle(event as EventOf<T>, new Context(entry, text));
      },
    });
  } finally {
    for (const connection of open) connection.close();
  }
}

/**
 * Waits for the subscription to appear in Redis, because the gateway may still be writing it.
 *
 * @throws Error if the subscription is missing after two seconds
 */
async function requireSubscription(
  { subscription }: ConsumerSettings,
  commands: Commands,
  signal: AbortSignal,
): Promise<void> {
  const untilMs = performance.now() + UNKNOWN_AFTER_MS;
  while (!signal.aborted && !(await commands.isKnown())) {
    if (performance.now() >= untilMs) {
      throw new Error(
        `the subscription ${subscription} is unknown in this Redis: check its id and the Redis address`,
      );
    }
    await sleep(200, signal);
  }
}

interface Offer<T> {
  readonly delivery: Delivery<T>;
  /** Ends the handler of the event. Without a failure, the event is acknowledged, unless the loop called `retry`. */
  readonly settle: (failure?: { readonly reason: unknown }) => void;
}

/** Turns a consumer with a handler into an iterator over its events. At most one event is offered at a time. */
async function* iterate<T>(
  start: (handler: Handler<T>, signals: { readonly stop: AbortSignal }) => Promise<void>,
): AsyncGenerator<Delivery<T>, void, void> {
  const stopping = new AbortController();
  let offer: Offer<T> | undefined;
  let wake: () => void = () => {};
  let isOver = false;
  const handle: Handler<T> = (event, context) =>
    new Promise((resolve, reject) => {
      let retried: { readonly reason: unknown } | undefined;
      const retry = (reason: unknown = new Error("the loop over events() called retry()")): void => {
        retried = { reason };
      };
      offer = {
        delivery: { ...context, signal: context.signal, event, retry },
        settle: (failure = retried) => (failure === undefined ? resolve() : reject(failure.reason)),
      };
      wake();
    });
  const running = start(handle, { stop: stopping.signal }).finally(() => {
    isOver = true;
    wake();
  });
  // Prevents an unhandled rejection before the loop has ended.
  running.catch(() => {});

  try {
    for (;;) {
      if (offer !== undefined) {
        const { delivery, settle }: Offer<T> = offer;
        yield delivery;
        offer = undefined;
        settle();
      } else if (isOver) break;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    await running;
  } finally {
    stopping.abort();
    offer?.settle({ reason: new Error("the loop over events() ended before it finished this event") });
    await running.catch(() => {});
  }
}
