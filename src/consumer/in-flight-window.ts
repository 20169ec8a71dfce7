import { endsWithin } from "../lib/sleep.ts";
import type { Commands, Entry } from "./commands.ts";
import { EntryQueues, queueNameOf } from "./entry-queues.ts";
import { EntryRunner, type RunnerDeps } from "./entry-runner.ts";
import { InFlight, InFlightEntries } from "./in-flight.ts";

export interface WindowDeps extends RunnerDeps {
  readonly commands: RunnerDeps["commands"] & Pick<Commands, "release">;
}

/** Share of the window that must be free before the reader reads more entries. */
const REFILL_SHARE = 0.5;
/** Number of queued entries per ordered topic, unless the handler gets more of them at once. */
const READ_AHEAD = 32;
/** Minimum number of entries in the window, and its maximum if the handler gets several at once. */
const [MIN_SIZE, MAX_SIZE_OF_BATCHES] = [256, 1_024];

/** Holds the entries that were delivered to this reader until they are acknowledged. */
export class InFlightWindow {
  readonly #deps: WindowDeps;
  readonly #inFlight = new InFlightEntries();
  readonly #queues: EntryQueues;
  readonly #runner: EntryRunner;
  readonly #size: number;
  readonly #readAhead: number;
  #wake: () => void = () => {};

  constructor(deps: WindowDeps) {
    const { acknowledger, batching, settings } = deps;
    this.#deps = deps;
    this.#queues = new EntryQueues(settings.ordered);
    const atOnce = batching?.maxEvents ?? 1;
    const size = settings.concurrency * 2 * atOnce;
    this.#size = Math.max(MIN_SIZE, batching ? Math.min(size, MAX_SIZE_OF_BATCHES) : size);
    this.#readAhead = Math.max(READ_AHEAD, atOnce);
    this.#runner = new EntryRunner(deps, {
      inFlight: this.#inFlight,
      queues: this.#queues,
      loadable: () => this.#loadable,
      onRoom: () => this.#noteRoom(),
      drop: (topic, entryIds) => this.drop(topic, entryIds),
    });
    acknowledger.onTaken = () => this.#noteRoom();
  }

  get free(): number {
    const { held } = this.#runner;
    return held === undefined ? this.#loadable : Math.min(this.#loadable, held.free);
  }

  /** Number of pending entries that this reader may claim now. */
  get claimable(): number {
    return this.#runner.held === undefined ? this.free : Number.POSITIVE_INFINITY;
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
    const isIdle = !this.#queues.hasReady || this.#runner.hasFreeHandler;
    return free >= this.#size * REFILL_SHARE || (free > 0 && isIdle);
  }

  /** Returns true if the queues of an ordered topic have space for more entries. */
  wants(topic: string): boolean {
    return this.#runner.held?.wants(topic) ?? this.#queues.lengthOf(topic) < this.#readAhead;
  }

  /** Returns true if an entry of this ordered topic is running or waiting for its retry. */
  isBusy(topic: string): boolean {
    return this.#queues.isTopicBusy(topic);
  }

  add(entries: readonly Entry[]): void {
    const { acknowledger, settings } = this.#deps;
    const { held } = this.#runner;
    for (const entry of entries) {
      const { topic, entryId } = entry;
      // Skip an entry that is already in this window, because the reader has claimed it again.
      if (this.#inFlight.get(topic, entryId)) continue;
      // Skip an entry that was already handled, but whose acknowledgement has not reached Redis yet.
      if (entry.attempt > 1 && acknowledger.holds(topic, entryId)) continue;
      const name = queueNameOf(settings.ordered, entry);
      const added = new InFlight(entry, name);
      // An ordered entry behind another one was claimed with it, but no reader has tried it alone.
      if (settings.ordered !== false && !this.#queues.isIdle(name)) added.attempt = 1;
      this.#inFlight.add(added);
      if (this.#loadable < 0 || held?.isFull(added) === true) held?.park(added);
      this.#queues.push(added);
    }
    this.#runner.dispatch();
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
    this.#runner.dispatch();
  }

  /** Resolves when there is room for another read. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Starts no more handlers. Running handlers continue. */
  stop(): void {
    this.#runner.stop();
  }

  /** Starts no more handlers, waits up to `timeoutMs` for running ones and their acknowledgements, then releases all remaining entries. */
  async close(timeoutMs: number): Promise<void> {
    this.stop();
    await endsWithin(timeoutMs, this.#runner.settled());
    const left = this.byTopic();
    for (const [topic, ids] of left) this.drop(topic, ids);
    for (const [topic, ids] of left) {
      await this.#deps.commands.release(topic, ids).catch(() => {});
    }
  }

  #noteRoom(): void {
    if (this.hasRoom) this.#wake();
  }
}
