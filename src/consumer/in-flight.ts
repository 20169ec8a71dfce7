import type { Entry } from "./commands.ts";

export interface DeliveredEntry {
  /** Name of the topic, which is also the key of its Redis stream. */
  readonly topic: string;
  /** Id of the entry in the topic's stream. Entries of other topics may have the same id. */
  readonly entryId: string;
  /** Number of this attempt, starting at 1. Earlier attempts may never have reached a handler, because their reader died. */
  readonly attempt: number;
  /** The raw entry, with alternating names and values. */
  readonly fields: readonly string[];
  /** Aborts when the stop timeout has passed, or when another reader has claimed the entry. Pass the signal on to your own calls. */
  readonly signal: AbortSignal;
}

/** Handles an entry. The entry is acknowledged if the promise resolves, and delivered again if the promise rejects. */
export type EntryHandler = (entry: DeliveredEntry) => Promise<void> | void;

const PARKED: readonly string[] = [];

/** An entry that was delivered to this reader and is not handled yet. */
export class InFlight implements DeliveredEntry {
  readonly topic: string;
  readonly entryId: string;
  /** Name of the queue in which this entry waits (`queueNameOf`). */
  readonly queue: string;
  fields: readonly string[];
  attempt: number;
  isDropped = false;
  #abort: AbortController | undefined;

  constructor({ topic, entryId, fields, attempt }: Entry, queue: string) {
    this.queue = queue;
    this.topic = topic;
    this.entryId = entryId;
    this.fields = fields;
    this.attempt = attempt;
  }

  /** Creates the signal only when it is used, because the signal costs more than the rest of the entry. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.isDropped) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Whether only the id of this entry is in memory, without its fields. */
  get isParked(): boolean {
    return this.fields === PARKED;
  }

  drop(): void {
    this.isDropped = true;
    this.#abort?.abort();
  }
}

/** The entries in flight, by topic and id. */
export class InFlightEntries {
  readonly #byTopic = new Map<string, Map<string, InFlight>>();
  #size = 0;
  #parked = 0;

  get size(): number {
    return this.#size;
  }

  /** Number of entries with their fields in memory. */
  get loaded(): number {
    return this.#size - this.#parked;
  }

  sizeOf(topic: string): number {
    return this.#byTopic.get(topic)?.size ?? 0;
  }

  /** Removes the fields of an entry from memory. */
  park(entry: InFlight): void {
    if (entry.isParked || this.get(entry.topic, entry.entryId) !== entry) return;
    entry.fields = PARKED;
    this.#parked++;
  }

  /** Sets the fields of a parked entry. */
  load(entry: InFlight, fields: readonly string[]): void {
    if (!entry.isParked || this.get(entry.topic, entry.entryId) !== entry) return;
    entry.fields = fields;
    this.#parked--;
  }

  get(topic: string, entryId: string): InFlight | undefined {
    return this.#byTopic.get(topic)?.get(entryId);
  }

  add(entry: InFlight): void {
    let ofTopic = this.#byTopic.get(entry.topic);
    if (ofTopic === undefined) {
      ofTopic = new Map();
      this.#byTopic.set(entry.topic, ofTopic);
    }
    ofTopic.set(entry.entryId, entry);
    this.#size++;
  }

  /** Returns false if the entry was deleted before. */
  delete({ topic, entryId }: InFlight): boolean {
    const ofTopic = this.#byTopic.get(topic);
    const stored = ofTopic?.get(entryId);
    if (ofTopic === undefined || stored === undefined) return false;
    ofTopic.delete(entryId);
    if (stored.isParked) this.#parked--;
    if (ofTopic.size === 0) this.#byTopic.delete(topic);
    this.#size--;
    return true;
  }

  idsByTopic(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#byTopic].map(([topic, ofTopic]) => [topic, [...ofTopic.keys()]]));
  }
}
