import { backoffMs } from "../lib/backoff.ts";
import { endsWithin, sleep } from "../lib/sleep.ts";
import type { Acknowledger } from "./acknowledge.ts";
import type { Commands, Entry } from "./commands.ts";
import { retry } from "./loop.ts";
import type { ConsumerSettings } from "./options.ts";

/** An entry as it is delivered to a handler. */
export interface DeliveredEntry {
  readonly topic: string;
  readonly entryId: string;
  /** From 1. More than 1 does not mean that a handler has seen it: a reader may have died with it. */
  readonly attempt: number;
  /** The entry as it stands on the topic: name, value, name, value … */
  readonly fields: readonly string[];
  /** Aborts when the reader stops and waits no longer, or another reader has claimed the entry. */
  readonly signal: AbortSignal;
}

/** The entry is acknowledged when it resolves, and delivered again when it rejects. */
export type EntryHandler = (entry: DeliveredEntry) => Promise<void> | void;

/** An entry that this reader has, as its handler sees it. */
class InFlight implements DeliveredEntry {
  readonly topic: string;
  readonly entryId: string;
  readonly fields: readonly string[];
  attempt: number;
  isDropped = false;
  #abort: AbortController | undefined;

  constructor({ topic, entryId, fields, attempt }: Entry) {
    this.topic = topic;
    this.entryId = entryId;
    this.fields = fields;
    this.attempt = attempt;
  }

  /** Made when it is asked for: few handlers do, and it costs more than the rest of an entry. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.isDropped) this.#abort.abort();
    return this.#abort.signal;
  }

  drop(): void {
    this.isDropped = true;
    this.#abort?.abort();
  }
}

export interface WindowDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter" | "release">;
  readonly settings: ConsumerSettings;
  readonly handler: EntryHandler;
  readonly acknowledger: Acknowledger;
  readonly onError: (error: unknown) => void;
  /** Of ordered reading: whether entries of the topic may be handed out now. */
  readonly owns?: ((topic: string) => boolean) | undefined;
}

/** So much of the window is free before more is read. */
const REFILL_SHARE = 0.5;
/** Entries of one ordered topic that are read ahead. */
const READ_AHEAD = 32;

/** All entries that this reader has: it runs the handler over them, and keeps those that fail until their next attempt. */
export class InFlightWindow {
  readonly #deps: WindowDeps;
  /** By topic, then by id. */
  readonly #inFlight = new Map<string, Map<string, InFlight>>();
  #count = 0;
  /** Runnable, in order of arrival; one queue for all topics, or one for each where they are ordered. */
  readonly #queues = new Map<string, InFlight[]>();
  readonly #busy = new Set<string>();
  /** Waits for another attempt, and what is being made a dead letter. */
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

  /** How many more entries fit. */
  get free(): number {
    return this.#size - this.#count - this.#deps.acknowledger.outstanding;
  }

  /** Whether to read now: many at a time, unless handlers would wait for it. What ordered topics hold back is nothing to run. */
  get hasRoom(): boolean {
    const { free } = this;
    const isIdle = this.#queues.size === 0 || this.#running < this.#deps.settings.concurrency;
    return free >= this.#size * REFILL_SHARE || (free > 0 && isIdle);
  }

  /** Whether more entries of an ordered topic may be read. */
  wants(topic: string): boolean {
    return (this.#queues.get(topic)?.length ?? 0) < READ_AHEAD;
  }

  /** True while a handler runs over an entry of the ordered topic. */
  isBusy(topic: string): boolean {
    return this.#busy.has(topic);
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const { topic, entryId } = entry;
      let ofTopic = this.#inFlight.get(topic);
      // Claimed back from this reader itself: it is in flight.
      if (ofTopic?.has(entryId)) continue;
      // The same, and it was handled.
      if (entry.attempt > 1 && this.#deps.acknowledger.holds(topic, entryId)) continue;
      if (ofTopic === undefined) {
        ofTopic = new Map();
        this.#inFlight.set(topic, ofTopic);
      }
      const added = new InFlight(entry);
      ofTopic.set(entryId, added);
      this.#count++;
      this.#queueOf(added).push(added);
    }
    this.#dispatch();
  }

  /** Ids in flight, by topic. */
  byTopic(): ReadonlyMap<string, readonly string[]> {
    return new Map([...this.#inFlight].map(([topic, ofTopic]) => [topic, [...ofTopic.keys()]]));
  }

  /** Drops entries that another reader has claimed. */
  drop(topic: string, entryIds: Iterable<string>): void {
    for (const entryId of entryIds) {
      const dropped = this.#inFlight.get(topic)?.get(entryId);
      if (dropped === undefined) continue;
      dropped.drop();
      this.#forget(dropped);
      const queue = this.#queueOf(dropped);
      const place = queue.indexOf(dropped);
      if (place >= 0) queue.splice(place, 1);
    }
    this.#noteRoom();
  }

  /** Hands out what had to wait until its topic was owned again. */
  resume(): void {
    this.#dispatch();
  }

  /** Resolves when there is room to read again. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** From now on nothing is delivered. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Stops, waits for running handlers and their acknowledgements, then releases what is left. */
  async close(timeoutMs: number): Promise<void> {
    this.stop();
    await endsWithin(timeoutMs, this.#settled());
    for (const ofTopic of this.#inFlight.values()) for (const inFlight of ofTopic.values()) inFlight.drop();
    for (const [topic, ids] of this.byTopic()) {
      await this.#deps.commands.release(topic, ids).catch(() => {});
    }
    this.#inFlight.clear();
    this.#count = 0;
  }

  async #settled(): Promise<void> {
    if (this.#running > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await Promise.all([...this.#tasks, this.#deps.acknowledger.settled()]);
  }

  /** False where it was dropped before. */
  #forget({ topic, entryId }: InFlight): boolean {
    const ofTopic = this.#inFlight.get(topic);
    if (!ofTopic?.delete(entryId)) return false;
    if (ofTopic.size === 0) this.#inFlight.delete(topic);
    this.#count--;
    return true;
  }

  #noteRoom(): void {
    if (this.hasRoom) this.#wake();
  }

  #queueNameOf({ topic }: InFlight): string {
    return this.#deps.settings.ordered ? topic : "";
  }

  #queueOf(inFlight: InFlight): InFlight[] {
    const name = this.#queueNameOf(inFlight);
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
      // A topic whose queue was emptied comes last in the next round.
      if (queue.length === 0) this.#queues.delete(name);
    }
  }

  #start(inFlight: InFlight, name: string): void {
    this.#running++;
    if (inFlight.attempt > this.#deps.settings.maxAttempts) {
      const error = new Error("its readers ended again and again while they had it");
      this.#track(this.#deadLetter(inFlight, error).finally(() => this.#leave(name)));
      return;
    }
    let result: Promise<void> | void;
    try {
      result = this.#deps.handler(inFlight);
    } catch (error) {
      // One that throws at once has failed like one that rejects.
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
    if (!this.#forget(inFlight)) {
      this.#leave(name);
    } else if (settings.ordered) {
      // What follows in order must not be handed out before Redis knows of this one.
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
    // An ordered topic waits for what failed; others go on meanwhile.
    this.#running--;
    void retried.finally(() => {
      this.#running++;
      this.#leave(name);
    });
    this.#dispatch();
  }

  /** A handler has ended: its place is another entry's. */
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
    const reason = error instanceof Error ? error.message : String(error);
    const retries = {
      signal: this.#stopping.signal,
      onError,
      backoffMs: (failures: number) => backoffMs(settings.retry, failures, Math.random),
    };
    if (!(await retry(() => commands.deadLetter(letter, reason), retries))) return;
    this.#forget(inFlight);
    settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.then(() => this.#tasks.delete(task));
  }
}
