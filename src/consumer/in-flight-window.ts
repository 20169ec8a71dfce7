import { endsWithin } from "../lib/sleep.ts";
import type { Acknowledger } from "./acknowledge.ts";
import type { Commands, Entry } from "./commands.ts";
import { EntryQueues, queueNameOf } from "./entry-queues.ts";
import { FailedEntries } from "./failed-entries.ts";
import { HeldEntries } from "./held-entries.ts";
import { type EntryHandler, InFlight, InFlightEntries } from "./in-flight.ts";
import type { ConsumerSettings } from "./options.ts";

export interface WindowDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter" | "loadEntries" | "release">;
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
  readonly #queues: EntryQueues;
  /** Set only if events are handled in order by key. */
  readonly #held: HeldEntries | undefined;
  readonly #failures: FailedEntries;
  /** Pending retries, dead letter writes and reads of parked entries. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #size: number;
  #running = 0;
  #wake: () => void = () => {};
  #onIdle: () => void = () => {};

  constructor(deps: WindowDeps) {
    const { acknowledger, commands, onError, settings } = deps;
    this.#deps = deps;
    this.#queues = new EntryQueues(settings.ordered);
    this.#size = Math.max(settings.concurrency * 2, 256);
    if (settings.ordered === "key") {
      const shared = { commands, settings, onError, inFlight: this.#inFlight, queues: this.#queues };
      this.#held = new HeldEntries({ ...shared, signal: this.#stopping.signal });
    }
    this.#failures = new FailedEntries({ commands, settings, onError, signal: this.#stopping.signal });
    acknowledger.onTaken = () => this.#noteRoom();
  }

  get free(): number {
    const loadable = this.#loadable;
    return this.#held === undefined ? loadable : Math.min(loadable, this.#held.free);
  }

  /** Number of pending entries that this reader may claim now. */
  get claimable(): number {
    return this.#held === undefined ? this.free : Number.POSITIVE_INFINITY;
  }

  /** Number of entries whose fields still fit into this window. */
  get #loadable(): number {
    return this.#size - this.#inFlight.loaded - this.#deps.acknowledger.outstanding;
  }

  /**
   * Whether to read more entries now. Normally waits until half of the window is free, because large reads are cheaper.
   *
   * Reads earlier if handlers are idle, for example because a failed entry blocks its ordered topic.
   */
  get hasRoom(): boolean {
    const { free } = this;
    const isIdle = !this.#queues.hasReady || this.#running < this.#deps.settings.concurrency;
    return free >= this.#size * REFILL_SHARE || (free > 0 && isIdle);
  }

  /** Returns true if the queues of an ordered topic have space for more entries. */
  wants(topic: string): boolean {
    return this.#held?.wants(topic) ?? this.#queues.lengthOf(topic) < READ_AHEAD;
  }

  /** Returns true if an entry of this ordered topic is running or waiting for its retry. */
  isBusy(topic: string): boolean {
    return this.#queues.isTopicBusy(topic);
  }

  add(entries: readonly Entry[]): void {
    const { acknowledger, settings } = this.#deps;
    for (const entry of entries) {
      const { topic, entryId } = entry;
      // Skip an entry that is already in this window, because the reader has claimed it again.
      if (this.#inFlight.get(topic, entryId)) continue;
      // Skip an entry that was already handled, but whose acknowledgement has not reached Redis yet.
      if (entry.attempt > 1 && acknowledger.holds(topic, entryId)) continue;
      const name = queueNameOf(settings.ordered, entry);
      const added = new InFlight(entry, name);
      // An ordered entry behind another one was claimed with it, but no reader has tried it.
      if (settings.ordered !== false && !this.#queues.isIdle(name)) added.attempt = 1;
      this.#inFlight.add(added);
      if (this.#loadable < 0 || this.#held?.isFull(added) === true) this.#held?.park(added);
      this.#queues.push(added);
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
      this.#queues.remove(dropped);
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

  #dispatch(): void {
    const { concurrency } = this.#deps.settings;
    if (this.#stopping.signal.aborted) return;
    while (this.#running < concurrency) {
      const next = this.#queues.take(this.#mayRun);
      if (next === undefined) break;
      this.#start(next);
    }
    while (this.#held?.isLoading === false && this.#loadable > 0) {
      const parked = this.#queues.holdParked(this.#mayRun);
      if (parked === undefined) break;
      this.#load(parked, this.#held);
    }
  }

  readonly #mayRun = ({ topic }: InFlight): boolean => this.#deps.owns?.(topic) !== false;

  #load(parked: InFlight, held: HeldEntries): void {
    const { topic, queue } = parked;
    const { acknowledger, settings } = this.#deps;
    const loading = held.load(parked).then((lost) => {
      for (const entryId of lost) acknowledger.add(topic, entryId);
      if (lost.length > 0) settings.onProblem({ kind: "lost", topic, entryIds: lost });
    });
    this.#track(loading.finally(() => this.#release(queue)));
  }

  #start(inFlight: InFlight): void {
    this.#running++;
    if (inFlight.attempt > this.#deps.settings.maxAttempts) {
      const error = new Error("every reader that had this entry died before it was handled");
      this.#giveUp(inFlight, error);
      this.#leave();
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
      () => {
        this.#handled(inFlight);
        this.#leave();
      },
      (error: unknown) => {
        this.#failed(inFlight, error);
        this.#leave();
      },
    );
  }

  #handled(inFlight: InFlight): void {
    const { acknowledger, settings } = this.#deps;
    const { topic, entryId, queue } = inFlight;
    if (!this.#inFlight.delete(inFlight)) this.#release(queue);
    else if (settings.ordered === false) acknowledger.add(topic, entryId);
    // Wait for Redis to acknowledge this entry before the next entry of the queue starts.
    else acknowledger.addThen(topic, entryId, () => this.#release(queue));
  }

  #failed(inFlight: InFlight, error: unknown): void {
    const { onError, settings } = this.#deps;
    const { topic, entryId, attempt, queue } = inFlight;
    if (inFlight.isDropped || this.#stopping.signal.aborted) {
      this.#release(queue);
      return;
    }
    if (attempt >= settings.maxAttempts) {
      this.#giveUp(inFlight, error);
      return;
    }
    settings.onProblem({ kind: "failed", topic, entryId, attempt, error });
    this.#held?.parkQueue(inFlight);
    this.#track(
      this.#retryLater(inFlight)
        .catch(onError)
        .finally(() => this.#release(queue)),
    );
  }

  /** Frees the place of a handler that has ended, and starts the next entries. */
  #leave(): void {
    this.#running--;
    this.#dispatch();
    this.#noteRoom();
    if (this.#running === 0) this.#onIdle();
  }

  /** Lets the next entry of an ordered queue start. */
  #release(queue: string): void {
    this.#queues.release(queue);
    this.#dispatch();
    this.#noteRoom();
  }

  async #retryLater(inFlight: InFlight): Promise<void> {
    const state = await this.#failures.waitForRetry(inFlight);
    if (state === "ready") this.#queues.putBack([inFlight]);
    if (state === "taken") this.drop(inFlight.topic, [inFlight.entryId]);
  }

  #giveUp(inFlight: InFlight, error: unknown): void {
    this.#track(this.#deadLetter(inFlight, error).finally(() => this.#release(inFlight.queue)));
  }

  async #deadLetter(inFlight: InFlight, error: unknown): Promise<void> {
    const { topic, entryId, attempt } = inFlight;
    if (!(await this.#failures.deadLetter(inFlight, error))) return;
    this.#inFlight.delete(inFlight);
    this.#deps.settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.then(() => this.#tasks.delete(task));
  }
}
