import { KEY_EXTENSION } from "../event/cloud-event.ts";
import type { Entry } from "./commands.ts";
import type { InFlight } from "./in-flight.ts";
import type { Ordering } from "./options.ts";

/**
 * Returns the name of the queue in which an entry waits. Entries of a queue are handled in order.
 *
 * Unordered entries all have the same name. With `"key"`, an event without a key has a queue of its own.
 */
export function queueNameOf(ordered: Ordering, { topic, entryId, fields }: Entry): string {
  if (ordered === false) return "";
  if (ordered === true) return topic;
  // Searches from the end, because extension attributes come last.
  for (let at = fields.length - 2; at >= 0; at -= 2)
    if (fields[at] === KEY_EXTENSION) return `${topic}\nkey ${fields[at + 1]}`;
  return `${topic}\n${entryId}`;
}

interface Queue {
  readonly topic: string;
  readonly entries: InFlight[];
  /** Whether an entry of this queue is running, or waits for its retry. */
  isBusy: boolean;
}

/** Entries that wait for their handler. Ordered queues are scheduled round-robin, so that a long queue does not delay the others. */
export class EntryQueues {
  readonly #isOrdered: boolean;
  readonly #queues = new Map<string, Queue>();
  /** Names of the queues that are not empty and not busy. The queue that waits longest is first. */
  readonly #ready = new Set<string>();
  /** Like `#ready`, for queues whose first entry is parked and must be loaded first. */
  readonly #unloaded = new Set<string>();
  /** Number of busy queues of each topic. */
  readonly #busyOf = new Map<string, number>();

  constructor(ordered: Ordering) {
    this.#isOrdered = ordered !== false;
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  lengthOf(name: string): number {
    return this.#queues.get(name)?.entries.length ?? 0;
  }

  /** Returns true if no entry of the queue waits or runs. */
  isIdle(name: string): boolean {
    const queue = this.#queues.get(name);
    return queue === undefined || (queue.entries.length === 0 && !queue.isBusy);
  }

  isTopicBusy(topic: string): boolean {
    return this.#busyOf.has(topic);
  }

  push(entry: InFlight): void {
    const queue = this.#queueOf(entry);
    queue.entries.push(entry);
    this.#offer(entry.queue, queue);
  }

  /** Puts entries of one queue at its front, in this order. */
  putBack(entries: readonly InFlight[]): void {
    const [first] = entries;
    if (first === undefined) return;
    const queue = this.#queueOf(first);
    queue.entries.unshift(...entries);
    this.#offer(first.queue, queue);
  }

  remove(entry: InFlight): void {
    const queue = this.#queues.get(entry.queue);
    const place = queue?.entries.indexOf(entry) ?? -1;
    if (queue === undefined || place < 0) return;
    queue.entries.splice(place, 1);
    if (place > 0) return;
    // The next entry may be parked although this one was not, or the other way around.
    this.#ready.delete(entry.queue);
    this.#unloaded.delete(entry.queue);
    this.#offer(entry.queue, queue);
    this.#forgetIfEmpty(entry.queue);
  }

  /** Takes the first entry that may run. If entries are ordered, its queue is then busy until `release`. */
  take(mayRun: (entry: InFlight) => boolean): InFlight | undefined {
    const entry = this.#find(this.#ready, mayRun);
    if (entry === undefined) return undefined;
    this.#queues.get(entry.queue)?.entries.shift();
    if (this.#isOrdered) this.#hold(entry);
    else this.#forgetIfEmpty(entry.queue);
    return entry;
  }

  /** Takes the next entry of a busy queue, to handle it together with the entries before it. */
  takeBehind(name: string, mayRun: (entry: InFlight) => boolean): InFlight | undefined {
    const queue = this.#queues.get(name);
    const [next] = queue?.entries ?? [];
    if (!queue?.isBusy || next === undefined || next.isParked || next.attempt > 1 || !mayRun(next))
      return undefined;
    return queue.entries.shift();
  }

  /** Returns the first parked entry that may run, without taking it. Its queue is busy until `release`, so that it can be loaded. */
  holdParked(mayRun: (entry: InFlight) => boolean): InFlight | undefined {
    const entry = this.#find(this.#unloaded, mayRun);
    if (entry !== undefined) this.#hold(entry);
    return entry;
  }

  /** Returns the first entries of a queue without taking them. */
  peek(name: string, count: number): readonly InFlight[] {
    return this.#queues.get(name)?.entries.slice(0, count) ?? [];
  }

  release(name: string): void {
    const queue = this.#queues.get(name);
    if (!queue?.isBusy) return;
    queue.isBusy = false;
    const busy = (this.#busyOf.get(queue.topic) ?? 0) - 1;
    if (busy > 0) this.#busyOf.set(queue.topic, busy);
    else this.#busyOf.delete(queue.topic);
    this.#offer(name, queue);
    this.#forgetIfEmpty(name);
  }

  #find(names: ReadonlySet<string>, mayRun: (entry: InFlight) => boolean): InFlight | undefined {
    for (const name of names) {
      const entry = this.#queues.get(name)?.entries[0];
      if (entry !== undefined && mayRun(entry)) return entry;
    }
    return undefined;
  }

  /** Lets the first entry of a queue be taken, unless the queue is busy. */
  #offer(name: string, { entries, isBusy }: Queue): void {
    const [first] = entries;
    if (first === undefined || isBusy) return;
    (first.isParked ? this.#unloaded : this.#ready).add(name);
  }

  #hold({ queue: name, topic }: InFlight): void {
    const queue = this.#queues.get(name);
    if (queue === undefined) return;
    queue.isBusy = true;
    this.#ready.delete(name);
    this.#unloaded.delete(name);
    this.#busyOf.set(topic, (this.#busyOf.get(topic) ?? 0) + 1);
  }

  #queueOf({ queue: name, topic }: InFlight): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = { topic, entries: [], isBusy: false };
      this.#queues.set(name, queue);
    }
    return queue;
  }

  #forgetIfEmpty(name: string): void {
    const queue = this.#queues.get(name);
    if (queue === undefined || queue.entries.length > 0) return;
    this.#ready.delete(name);
    this.#unloaded.delete(name);
    if (!queue.isBusy) this.#queues.delete(name);
  }
}
