import type { EntryQueues } from "./entry-queues.ts";
import type { DeliveredEntry, InFlight } from "./in-flight.ts";

/** How a reader hands several entries at once to its handler. */
export interface Batching {
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Maximum time in ms that the first entry of a batch waits for others. */
  readonly maxWaitMs: number;
  /** Returns the bytes that an entry adds to a batch. */
  readonly sizeOf: (fields: readonly string[]) => number;
  /**
   * Handles entries in this order. Resolves with the entries that failed and their errors, and the others are acknowledged. If it rejects, all
   * of them have failed.
   */
  readonly handler: (entries: readonly DeliveredEntry[]) => Promise<ReadonlyMap<DeliveredEntry, unknown>>;
}

type MayRun = (entry: InFlight) => boolean;

/**
 * Collects the entries of the next batch from the queues.
 *
 * A batch has entries of as many queues as possible, so that a long queue does not delay the others. Only then do more entries of the same
 * queues follow. An ordered entry that has failed before is the only one of its queue, because the entries behind it would fail with it
 * again.
 */
export class BatchCollector {
  readonly #batching: Batching;
  readonly #queues: EntryQueues;
  readonly #onDue: () => void;
  #entries: InFlight[] = [];
  #bytes = 0;
  #isFull = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param onDue called when the current batch has waited long enough */
  constructor(batching: Batching, queues: EntryQueues, onDue: () => void) {
    this.#batching = batching;
    this.#queues = queues;
    this.#onDue = onDue;
  }

  /** Returns a batch that is full or has waited long enough, and otherwise `undefined`. */
  next(mayRun: MayRun): readonly InFlight[] | undefined {
    this.#fill(mayRun);
    if (this.#entries.length === 0) return undefined;
    this.#timer ??= setTimeout(() => {
      this.#isFull = true;
      this.#onDue();
    }, this.#batching.maxWaitMs);
    return this.#isFull || this.#batching.maxWaitMs === 0 ? this.#close() : undefined;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #close(): readonly InFlight[] {
    clearTimeout(this.#timer);
    const entries = this.#entries;
    this.#timer = undefined;
    this.#entries = [];
    this.#bytes = 0;
    this.#isFull = false;
    return entries;
  }

  #fill(mayRun: MayRun): void {
    const canJoin: MayRun = (entry) => mayRun(entry) && this.#fits(entry);
    for (;;) {
      const entry = this.#isFull ? undefined : this.#queues.take(canJoin);
      if (entry === undefined) break;
      this.#add(entry);
    }
    const tried = this.#entries.filter(({ attempt }) => attempt > 1).map(({ queue }) => queue);
    const names = new Set(this.#entries.map(({ queue }) => queue));
    for (const name of tried) names.delete(name);
    for (const name of names) {
      for (;;) {
        const entry = this.#isFull ? undefined : this.#queues.takeBehind(name, canJoin);
        if (entry === undefined) break;
        this.#add(entry);
      }
    }
  }

  #fits({ fields }: InFlight): boolean {
    const isFit =
      this.#entries.length === 0 || this.#bytes + this.#batching.sizeOf(fields) <= this.#batching.maxBytes;
    if (!isFit) this.#isFull = true;
    return isFit;
  }

  #add(entry: InFlight): void {
    this.#entries.push(entry);
    this.#bytes += this.#batching.sizeOf(entry.fields);
    if (this.#entries.length >= this.#batching.maxEvents || this.#bytes >= this.#batching.maxBytes)
      this.#isFull = true;
  }
}
