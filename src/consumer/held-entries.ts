import type { Commands } from "./commands.ts";
import type { EntryQueues } from "./entry-queues.ts";
import type { InFlight, InFlightEntries } from "./in-flight.ts";
import { retry } from "./loop.ts";
import type { ConsumerSettings } from "./options.ts";

export interface HeldEntriesDeps {
  readonly commands: Pick<Commands, "loadEntries">;
  readonly settings: Pick<ConsumerSettings, "concurrency">;
  /** Maximum number of entries of a key that are handled at once. */
  readonly maxAtOnce: number;
  readonly inFlight: InFlightEntries;
  readonly queues: EntryQueues;
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

/** Number of entries per key whose fields are in memory, unless the handler gets more of them at once. */
const LOADED_OF_KEY = 8;
/** Maximum number of entries that one reader holds, over all topics. */
const MAX_HELD = 20_000;
/** Maximum number of entries of one topic that a reader holds, so that one topic does not stop the others. */
const MAX_HELD_OF_TOPIC = 10_000;
const LOAD_RETRY_MS = 500;

/**
 * Bounds the entries that wait for an earlier entry of their key.
 *
 * A consumer group delivers the entries of all keys in one sequence, so a reader cannot read past a key that is stuck. It must take the
 * entries of this key too. They stay pending in Redis, and this reader keeps only their ids (they are "parked"). A parked entry is
 * read again, by its id, when its key continues.
 *
 * - A key has only a few entries with their fields in memory (`LOADED_OF_KEY`), and none while it waits for a retry. The other keys
 *   therefore have the rest of the window, and a key with many events does not stop them.
 * - A reader holds at most `MAX_HELD` entries. At this limit it reads no new entries until a key continues, which takes about an hour
 *   at most. Only then do other keys wait for a stuck one. Skipping entries without a limit would instead grow the list of pending
 *   entries in Redis.
 *
 * Entries of an earlier owner of a topic are always held, even above the limit: that owner had the same limit.
 */
export class HeldEntries {
  readonly #deps: HeldEntriesDeps;
  /** Names of the queues whose first entry waits for its retry. */
  readonly #stuck = new Set<string>();
  readonly #maxLoaded: number;
  #loads = 0;

  constructor(deps: HeldEntriesDeps) {
    this.#deps = deps;
    this.#maxLoaded = Math.max(LOADED_OF_KEY, deps.maxAtOnce);
  }

  /** Number of entries that may still be read. */
  get free(): number {
    return MAX_HELD - this.#deps.inFlight.size;
  }

  /** Whether as many parked entries are being read as handlers can run. */
  get isLoading(): boolean {
    return this.#loads >= this.#deps.settings.concurrency;
  }

  wants(topic: string): boolean {
    return this.#deps.inFlight.sizeOf(topic) < MAX_HELD_OF_TOPIC;
  }

  /** Returns true if the key of an entry has no place for another entry in memory. */
  isFull({ queue }: InFlight): boolean {
    return this.#stuck.has(queue) || this.#deps.queues.lengthOf(queue) >= this.#maxLoaded;
  }

  park(entry: InFlight): void {
    this.#deps.inFlight.park(entry);
  }

  /** Parks an entry that waits for its retry, those that failed with it, and all entries behind them. */
  parkQueue(entry: InFlight, failedWithIt: readonly InFlight[]): void {
    const { inFlight, queues } = this.#deps;
    this.#stuck.add(entry.queue);
    // Entries behind the first ones of the queue were parked when they arrived.
    const behind = queues.peek(entry.queue, this.#maxLoaded);
    for (const one of [entry, ...failedWithIt, ...behind]) inFlight.park(one);
  }

  /** Called when the first entry of a queue no longer waits for its retry. */
  noteContinued(queue: string): void {
    this.#stuck.delete(queue);
  }

  /**
   * Reads the fields of the first entries of a queue. Drops entries that no longer exist.
   *
   * @returns ids of entries that retention has trimmed
   */
  async load({ topic, queue, attempt }: InFlight): Promise<readonly string[]> {
    const { commands, inFlight, queues, onError, signal } = this.#deps;
    // An entry that has failed may fail again. Reading the entries behind it would then be useless.
    const parked = queues.peek(queue, attempt > 1 ? 1 : this.#maxLoaded).filter(({ isParked }) => isParked);
    const lost: string[] = [];
    const read = async (): Promise<void> => {
      const ids = parked.map(({ entryId }) => entryId);
      for (const [index, content] of (await commands.loadEntries(topic, ids)).entries()) {
        const entry = parked[index];
        // The reader may have lost the topic during the call.
        if (entry === undefined || entry.isDropped) continue;
        if (typeof content !== "string") {
          inFlight.load(entry, content);
          continue;
        }
        entry.drop();
        inFlight.delete(entry);
        queues.remove(entry);
        if (content === "lost") lost.push(entry.entryId);
      }
    };
    this.#loads++;
    await retry(read, { signal, onError, backoffMs: () => LOAD_RETRY_MS });
    this.#loads--;
    return lost;
  }
}
