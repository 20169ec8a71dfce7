import { type ConsumedEvent, readEvent } from "../event/cloud-event.ts";
import { sleep } from "../lib/sleep.ts";
import { createCommands } from "./commands.ts";
import { type Connection, connect } from "./connection.ts";
import { runEngine } from "./engine.ts";
import type { DeliveredEntry } from "./in-flight-window.ts";
import { type ConsumerOptions, type ConsumerSettings, readOptions } from "./options.ts";

export type { ConsumerProblem } from "./options.ts";
export type { ConsumedEvent, ConsumerOptions };

/** The entry of an event, for its handler. */
export interface DeliveryContext extends DeliveredEntry {
  /** The `data` as it stands on the topic: numbers as their sender spelled them; undefined where there is none, or bytes. */
  readonly text: string | undefined;
}

/** The event is acknowledged when it resolves, and delivered again when it rejects. */
export type Handler<T = unknown> = (
  event: ConsumedEvent<T>,
  context: DeliveryContext,
) => Promise<void> | void;

/** An event taken by `for await`. */
export interface Delivery<T = unknown> extends DeliveryContext {
  readonly event: ConsumedEvent<T>;
  /** Not handled: it is delivered again later. Without it, asking for the next event acknowledges this one. */
  readonly retry: (reason?: unknown) => void;
}

export interface RunOptions {
  /** Ends the reading: handlers under way are waited for. */
  readonly signal?: AbortSignal;
}

/**
 * Reads the events of a subscription from Redis, each at least once. Any number of readers share a subscription; the entries of one
 * that dies are claimed by others after `deadAfterMs`.
 */
export interface Consumer<T = unknown> {
  /**
   * Delivers each event to `handler` and acknowledges it when that resolves. Resolves when `signal` has aborted and everything in
   * flight has ended.
   *
   * @throws Error where at the start Redis cannot be reached, or does not know the subscription; later both are waited for.
   */
  readonly run: (handler: Handler<T>, options?: RunOptions) => Promise<void>;
  /** One event after the other. Leaving the loop ends the reading; the event of the last round is then not acknowledged. */
  readonly events: (options?: RunOptions) => AsyncGenerator<Delivery<T>, void, void>;
}

/** @throws TypeError that names the option, or all that are unknown. */
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

/** Not a literal with a getter: that would be made anew, its function too, for each entry. */
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
    await requireSubscription(settings, connection, signal);
    const blocking = await connect(settings.redis, onError);
    open.push(blocking);
    await runEngine({
      settings,
      connection,
      blocking,
      signal,
      handler(entry) {
        const { event, text } = readEvent<T>(entry.fields);
        return handle(event, new Context(entry, text));
      },
    });
  } finally {
    for (const connection of open) connection.close();
  }
}

/** @throws Error where the gateway does not know the subscription; one that was just made may take it a moment */
async function requireSubscription(
  settings: ConsumerSettings,
  connection: Connection,
  signal: AbortSignal,
): Promise<void> {
  const commands = createCommands(connection, settings);
  const untilMs = performance.now() + UNKNOWN_AFTER_MS;
  while (!signal.aborted && !(await commands.isKnown())) {
    if (performance.now() >= untilMs) {
      throw new Error(
        `the subscription ${settings.subscription} is unknown in this Redis: look at its id, and at the address`,
      );
    }
    await sleep(200, signal);
  }
}

/** Turns a consumer that calls a handler into an iterator. */
async function* iterate<T>(
  start: (handler: Handler<T>, signals: { readonly stop: AbortSignal }) => Promise<void>,
): AsyncGenerator<Delivery<T>, void, void> {
  const stopping = new AbortController();
  type Offer = Delivery<T> & { readonly settle: (failure?: { readonly reason: unknown }) => void };
  const offers: Offer[] = [];
  let wake: () => void = () => {};
  let failure: { readonly error: unknown } | undefined;
  let isOver = false;

  const running = start(
    (event, context) => {
      let refused: { readonly reason: unknown } | undefined;
      return new Promise((resolve, reject) => {
        offers.push({
          ...context,
          signal: context.signal,
          event,
          retry: (reason = new Error("to be tried again")) => {
            refused = { reason };
          },
          settle: (left = refused) => (left === undefined ? resolve() : reject(left.reason)),
        });
        wake();
      });
    },
    { stop: stopping.signal },
  )
    .catch((error: unknown) => {
      failure = { error };
    })
    .finally(() => {
      isOver = true;
      wake();
    });

  let last: Offer | undefined;
  try {
    for (;;) {
      last?.settle();
      last = undefined;
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      last = offers.shift();
      if (last !== undefined) yield last;
      else if (isOver) break;
      else await woken;
    }
    if (failure !== undefined) throw failure.error;
  } finally {
    stopping.abort();
    last?.settle({ reason: new Error("the loop was left") });
    for (const offer of offers) offer.settle({ reason: new Error("the loop was left") });
    await running;
  }
}
