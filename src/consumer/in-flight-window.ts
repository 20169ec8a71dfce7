import { backoffMs } from "../lib/backoff.ts";
import { endsWithin, sleep } from "../lib/sleep.ts";
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

interface InFlight {
  readonly entry: Entry;
  readonly abort: AbortController;
  attempt: number;
}

/** The wait before another attempt; boxed, so that it is not awaited by accident. */
interface RetryWait {
  readonly ended: Promise<void>;
}

export interface WindowDeps {
  readonly commands: Pick<Commands, "countAttempt" | "deadLetter" | "release">;
  readonly settings: ConsumerSettings;
  readonly handler: EntryHandler;
  readonly acknowledge: (topic: string, entryId: string) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** Of ordered reading: whether entries of the topic may be handed out now. */
  readonly owns?: ((topic: string) => boolean) | undefined;
}

/** Entries of one ordered topic that are read ahead. */
const READ_AHEAD = 32;

/** All entries that this reader has: it runs the handler over them, and keeps those that fail until their next attempt. */
export class InFlightWindow {
  readonly #deps: WindowDeps;
  readonly #inFlight = new Map<string, InFlight>();
  /** Runnable, in order of arrival; one queue for all topics, or one for each where they are ordered. */
  readonly #queues = new Map<string, InFlight[]>();
  readonly #busy = new Set<string>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  readonly #size: number;
  #running = 0;
  #wake: () => void = () => {};

  constructor(deps: WindowDeps) {
    this.#deps = deps;
    this.#size = Math.max(deps.settings.concurrency * 2, 256);
  }

  /** How many more entries fit. */
  get free(): number {
    return this.#size - this.#inFlight.size;
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
      const key = keyOf(entry);
      // Claimed back from this reader itself: it is in flight.
      if (this.#inFlight.has(key)) continue;
      const added: InFlight = { entry, abort: new AbortController(), attempt: entry.attempt };
      this.#inFlight.set(key, added);
      this.#queueOf(added).push(added);
    }
    this.#dispatch();
  }

  /** Ids in flight, by topic. */
  byTopic(): ReadonlyMap<string, readonly string[]> {
    const topics = new Map<string, string[]>();
    for (const { entry } of this.#inFlight.values()) {
      const ids = topics.get(entry.topic);
      if (ids === undefined) topics.set(entry.topic, [entry.entryId]);
      else ids.push(entry.entryId);
    }
    return topics;
  }

  /** Drops entries that another reader has claimed. */
  drop(topic: string, entryIds: Iterable<string>): void {
    for (const entryId of entryIds) {
      const key = keyOf({ topic, entryId });
      const dropped = this.#inFlight.get(key);
      if (dropped === undefined) continue;
      dropped.abort.abort();
      this.#inFlight.delete(key);
      const queue = this.#queueOf(dropped);
      const place = queue.indexOf(dropped);
      if (place >= 0) queue.splice(place, 1);
    }
    this.#wake();
  }

  /** Hands out what had to wait until its topic was owned again. */
  resume(): void {
    this.#dispatch();
  }

  /** Resolves when there is room again, or an entry has left. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** From now on nothing is delivered. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Stops, waits for running handlers, then releases what is left. */
  async close(timeoutMs: number): Promise<void> {
    this.stop();
    await endsWithin(timeoutMs, Promise.allSettled([...this.#tasks]));
    for (const { abort } of this.#inFlight.values()) abort.abort();
    for (const [topic, ids] of this.byTopic()) {
      await this.#deps.commands.release(topic, ids).catch(() => {});
    }
    this.#inFlight.clear();
  }

  #queueNameOf({ entry }: InFlight): string {
    return this.#deps.settings.ordered ? entry.topic : "";
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
    const leave = (): void => {
      this.#busy.delete(name);
      this.#dispatch();
      this.#wake();
    };
    this.#running++;
    const task = this.#attempt(inFlight)
      .catch((error: unknown): undefined => {
        this.#deps.onError(error);
      })
      .then((wait) => {
        this.#running--;
        // An ordered topic waits for what failed; others go on meanwhile.
        if (wait !== undefined && this.#deps.settings.ordered) {
          this.#track(wait.ended.finally(leave));
          this.#dispatch();
        } else {
          if (wait !== undefined) this.#track(wait.ended);
          leave();
        }
      });
    this.#track(task);
  }

  /** Delivers the entry once. Answers the wait before the next attempt where one is due. */
  async #attempt(inFlight: InFlight): Promise<RetryWait | undefined> {
    const { acknowledge, handler, settings } = this.#deps;
    const { entry, attempt, abort } = inFlight;
    const { topic, entryId, fields } = entry;
    if (attempt > settings.maxAttempts) {
      await this.#deadLetter(inFlight, new Error("its readers ended again and again while they had it"));
      return undefined;
    }
    try {
      await handler({ topic, entryId, attempt, fields, signal: abort.signal });
    } catch (error) {
      if (abort.signal.aborted || this.#stopping.signal.aborted) return undefined;
      if (attempt >= settings.maxAttempts) {
        await this.#deadLetter(inFlight, error);
        return undefined;
      }
      settings.onProblem({ kind: "failed", topic, entryId, attempt, error });
      return { ended: this.#waitForRetry(inFlight) };
    }
    if (this.#inFlight.delete(keyOf(entry))) await acknowledge(topic, entryId);
    return undefined;
  }

  async #waitForRetry(inFlight: InFlight): Promise<void> {
    const { commands, settings, onError } = this.#deps;
    const { entry, abort } = inFlight;
    const signal = AbortSignal.any([abort.signal, this.#stopping.signal]);
    const waitMs = (): number => backoffMs(settings.retry, inFlight.attempt, Math.random);
    await sleep(waitMs(), signal);
    if (signal.aborted) return;
    let isOurs = false;
    const count = async (): Promise<void> => {
      isOurs = await commands.countAttempt(entry, inFlight.attempt + 1);
    };
    if (!(await retry(count, { signal, onError, backoffMs: waitMs }))) return;
    if (!isOurs) return this.drop(entry.topic, [entry.entryId]);
    inFlight.attempt++;
    this.#queueOf(inFlight).unshift(inFlight);
    this.#dispatch();
  }

  async #deadLetter({ entry, attempt }: InFlight, error: unknown): Promise<void> {
    const { commands, settings, onError } = this.#deps;
    const { topic, entryId } = entry;
    const letter = { ...entry, attempt: Math.min(attempt, settings.maxAttempts) };
    const reason = error instanceof Error ? error.message : String(error);
    const retries = {
      signal: this.#stopping.signal,
      onError,
      backoffMs: (failures: number) => backoffMs(settings.retry, failures, Math.random),
    };
    if (!(await retry(() => commands.deadLetter(letter, reason), retries))) return;
    this.#inFlight.delete(keyOf(entry));
    settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.finally(() => this.#tasks.delete(task));
  }
}

const keyOf = ({ topic, entryId }: Pick<Entry, "topic" | "entryId">): string => `${entryId} ${topic}`;
