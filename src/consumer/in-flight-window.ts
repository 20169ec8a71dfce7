import { backoffMs } from "../lib/backoff.ts";
import { endsWithin, sleep } from "../lib/sleep.ts";
import type { Acknowledger } from "./acknowledge.ts";
import type { Commands, Entry } from "./commands.ts";
import { type EntryHandler, InFlight, InFlightEntries } from "./in-flight.ts";
import { retry } from "./loop.ts";
import type { ConsumerSettings } from "./options.ts";
import { messageOf } from "./problems.ts";

export interface WindowDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter" | "release">;
  readonly settings: ConsumerSettings;
  readonly handler: EntryHandler;
  readonly acknowledger: Acknowledger;
  readonly onError: (error: unknown) => void;
  /** Returns true if this reader may handle entries of the topic. Set only if events are handled in order. */
  readonly owns?: ((topic: string) => boolean) | undefined;
}

/** Share of the window that must be free before the reader reads more entries. */
const REFILL_SHARE = 0.5;
/** Maximum number of queued entries per ordered topic. */
const READ_AHEAD = 32;

/** Holds the entries that were delivered to this reader. Runs the handler on each entry and retries failed ones. */
export class InFlightWindow {
  readonly #deps: WindowDeps;
  readonly #inFlight = new InFlightEntries();
  /**
   * Entries ready to run, in order of arrival. Ordered consumers have one queue per topic; in all others, all topics share the
   * queue "".
   */
  readonly #queues = new Map<string, InFlight[]>();
  readonly #busy = new Set<string>();
  /** Pending retries and dead letter writes. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #size: number;
  #running = 0;
  #wake: () => void = () => {};
  #onIdle: () => void = () => {};

  constructor(deps: WindowDeps) {
    this.#deps = deps;
    this.#size = Math.max(deps.settings.concurrency * 2, 256);
    deps.acknowledger.onTaken = () => this.#noteRoom();
  }

  get free(): number {
    return this.#size - this.#inFlight.size - this.#deps.acknowledger.outstanding;
  }

  /**
   * Whether to read more entries now. Normally waits until half of the window is free, because large reads are cheaper.
   *
   * Reads earlier if handlers are idle, for example because a failed entry blocks its ordered topic.
   */
  get hasRoom(): boolean {
    const { free } = this;
    const isIdle = this.#queues.size === 0 || this.#running < this.#deps.settings.concurrency;
    return free >= this.#size * REFILL_SHARE || (free > 0 && isIdle);
  }

  /** Returns true if the queue of an ordered topic has space for more entries. */
  wants(topic: string): boolean {
    return (this.#queues.get(topic)?.length ?? 0) < READ_AHEAD;
  }

  /** Returns true if an entry of this ordered topic is running or waiting for its retry. */
  isBusy(topic: string): boolean {
    return this.#busy.has(topic);
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { topic, entryId } = entry;
      // Skip an entry that is already in this window, because the reader has claimed it again.
      if (this.#inFlight.get(topic, entryId)) continue;
      // Skip an entry that was already handled, but whose acknowledgement has not reached Redis yet.
      if (entry.attempt > 1 && this.#deps.acknowledger.holds(topic, entryId)) continue;
      const added = new InFlight(entry);
      this.#inFlight.add(added);
      this.#queueOf(added).push(added);
    }
    this.#dispatch();
  }

  byTopic(): ReadonlyMap<string, readonly string[]> {
    return this.#inFlight.idsByTopic();
  }

  drop(topic: string, entryIds: Iterable<string>): void {
    for (const entryId of entryIds) {
      const dropped = this.#inFlight.get(topic, entryId);
      if (dropped === undefined) continue;
      dropped.drop();
      this.#inFlight.delete(dropped);
      const queue = this.#queueOf(dropped);
      const place = queue.indexOf(dropped);
      if (place >= 0) queue.splice(place, 1);
    }
    this.#noteRoom();
  }

  /** Starts entries that had to wait because this reader was not allowed to handle their topic. */
  resume(): void {
    this.#dispatch();
  }

  /** Resolves when there is room for another read. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Starts no more handlers. Running handlers continue. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Starts no more handlers, waits up to `timeoutMs` for running ones and their acknowledgements, then releases all remaining entries. */
  async close(timeoutMs: number): Promise<void> {
    this.stop();
    await endsWithin(timeoutMs, this.#settled());
    const left = this.byTopic();
    for (const [topic, ids] of left) this.drop(topic, ids);
    for (const [topic, ids] of left) {
      await this.#deps.commands.release(topic, ids).catch(() => {});
    }
  }

  async #settled(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await Promise.all([...this.#tasks, this.#deps.acknowledger.settled()]);
  }

  #noteRoom(): void {
    if (this.hasRoom) this.#wake();
  }

  #queueOf({ topic }: InFlight): InFlight[] {
    const name = this.#deps.settings.ordered ? topic : "";
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    return queue;
  }

  #dispatch(): void {
    const { owns, settings } = this.#deps;
    const { concurrency, ordered } = settings;
    if (this.#stopping.signal.aborted) return;
    for (const [name, queue] of this.#queues) {
      if (owns?.(name) === false) continue;
      while (this.#running < concurrency && !(ordered && this.#busy.has(name))) {
        const next = queue.shift();
        if (next === undefined) break;
        if (ordered) this.#busy.add(name);
        this.#start(next, name);
      }
      // Delete the empty queue, so that its topic moves to the end of the iteration order.
      if (queue.length === 0) this.#queues.delete(name);
    }
  }

  #start(inFlight: InFlight, name: string): void {
    this.#running++;
    if (inFlight.attempt > this.#deps.settings.maxAttempts) {
      const error = new Error("every reader that had this entry died before it was handled");
      this.#track(this.#deadLetter(inFlight, error).finally(() => this.#leave(name)));
      return;
    }
    let result: Promise<void> | void;
    try {
      result = this.#deps.handler(inFlight);
    } catch (error) {
      // Handle a synchronous throw like a rejection.
      result = Promise.reject(error);
    }
    Promise.resolve(result).then(
      () => this.#handled(inFlight, name),
      (error: unknown) => this.#failed(inFlight, name, error),
    );
  }

  #handled(inFlight: InFlight, name: string): void {
    const { acknowledger, settings } = this.#deps;
    const { topic, entryId } = inFlight;
    if (!this.#inFlight.delete(inFlight)) {
      this.#leave(name);
    } else if (settings.ordered) {
      // Wait for Redis to acknowledge this entry before the next entry of the topic starts.
      acknowledger.addThen(topic, entryId, () => this.#leave(name));
    } else {
      acknowledger.add(topic, entryId);
      this.#leave(name);
    }
  }

  #failed(inFlight: InFlight, name: string, error: unknown): void {
    const { settings } = this.#deps;
    const { topic, entryId, attempt } = inFlight;
    if (inFlight.isDropped || this.#stopping.signal.aborted) {
      this.#leave(name);
      return;
    }
    if (attempt >= settings.maxAttempts) {
      this.#track(this.#deadLetter(inFlight, error).finally(() => this.#leave(name)));
      return;
    }
    settings.onProblem({ kind: "failed", topic, entryId, attempt, error });
    const retried = this.#waitForRetry(inFlight).catch(this.#deps.onError);
    this.#track(retried);
    if (!settings.ordered) {
      this.#leave(name);
      return;
    }
    // Let other topics use the handler while this ordered topic waits for its retry.
    this.#running--;
    void retried.finally(() => {
      this.#running++;
      this.#leave(name);
    });
    this.#dispatch();
  }

  /** Frees the place of a finished handler and starts the next entries. */
  #leave(name: string): void {
    this.#running--;
    this.#busy.delete(name);
    this.#dispatch();
    this.#noteRoom();
    if (this.#running === 0) this.#onIdle();
  }

  async #waitForRetry(inFlight: InFlight): Promise<void> {
    const { commands, settings, onError } = this.#deps;
    const signal = AbortSignal.any([inFlight.signal, this.#stopping.signal]);
    const waitMs = (): number => backoffMs(settings.retry, inFlight.attempt, Math.random);
    await sleep(waitMs(), signal);
    if (signal.aborted) return;
    let isOurs = false;
    const count = async (): Promise<void> => {
      isOurs = await commands.countAttempt(inFlight, inFlight.attempt + 1);
    };
    if (!(await retry(count, { signal, onError, backoffMs: waitMs }))) return;
    if (!isOurs) return this.drop(inFlight.topic, [inFlight.entryId]);
    inFlight.attempt++;
    this.#queueOf(inFlight).unshift(inFlight);
    this.#dispatch();
  }

  async #deadLetter(inFlight: InFlight, error: unknown): Promise<void> {
    const { commands, settings, onError } = this.#deps;
    const { topic, entryId, fields, attempt } = inFlight;
    const letter = { topic, entryId, fields, attempt: Math.min(attempt, settings.maxAttempts) };
    const retries = {
      signal: this.#stopping.signal,
      onError,
      backoffMs: (failures: number) => backoffMs(settings.retry, failures, Math.random),
    };
    if (!(await retry(() => commands.deadLetter(letter, messageOf(error)), retries))) return;
    this.#inFlight.delete(inFlight);
    settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.then(() => this.#tasks.delete(task));
  }
}
