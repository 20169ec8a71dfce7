import { setTimeout as delay } from "node:timers/promises";
import { backoffMs } from "../lib/backoff.ts";
import type { Commands, Entry } from "./commands.ts";
import type { ConsumerSettings } from "./options.ts";

/** An entry as it is handed out. */
export interface HandedEntry {
  readonly topic: string;
  readonly entryId: string;
  /** 1 at first. More than 1 does not mean that the handler has seen it: a reader may have died with it. */
  readonly attempt: number;
  /** The entry as it stands on the topic: name, value, name, value … */
  readonly fields: readonly string[];
  /** Aborts when the reader stops and will not wait longer, or the entry is another reader's by now. */
  readonly signal: AbortSignal;
}

/** The entry is acknowledged when it resolves, and handed out again when it rejects. */
export type EntryHandler = (entry: HandedEntry) => Promise<void> | void;

interface Held {
  readonly entry: Entry;
  readonly abort: AbortController;
  attempt: number;
}

/** The time between two attempts at an entry; boxed, so that it is not waited for by accident. */
interface Rest {
  readonly over: Promise<void>;
}

export interface HandDeps {
  readonly commands: Commands;
  readonly settings: ConsumerSettings;
  readonly handler: EntryHandler;
  readonly acknowledge: (topic: string, entryId: string) => Promise<void>;
}

/** Entries of one topic in ordered reading are fetched ahead up to so many. */
const AHEAD = 32;

/** All entries that this reader has: it runs the handler over them, and keeps those that fail until their next attempt. */
export class Hand {
  readonly #deps: HandDeps;
  readonly #held = new Map<string, Held>();
  /** Runnable, in order of arrival; one queue for all topics, or one for each where they are ordered. */
  readonly #queues = new Map<string, Held[]>();
  readonly #busy = new Set<string>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #resting = new AbortController();
  readonly #most: number;
  #running = 0;
  #isOpen = true;
  #wake: () => void = () => {};

  constructor(deps: HandDeps) {
    this.#deps = deps;
    this.#most = Math.max(deps.settings.concurrency * 2, 256);
  }

  /** How many more entries may come. */
  get room(): number {
    return this.#most - this.#held.size;
  }

  /** Whether entries of an ordered topic may come. */
  isHungry(topic: string): boolean {
    return (this.#queues.get(topic)?.length ?? 0) < AHEAD;
  }

  add(entries: readonly Entry[]): void {
    for (const entry of entries) {
      const key = keyOf(entry);
      // Taken over from a reader that was this one: it is under way.
      if (this.#held.has(key)) continue;
      const held: Held = { entry, abort: new AbortController(), attempt: entry.attempt };
      this.#held.set(key, held);
      this.#enqueue(held);
    }
    this.#pump();
  }

  /** Ids in hand, by topic. */
  byTopic(): ReadonlyMap<string, readonly string[]> {
    const topics = new Map<string, string[]>();
    for (const { entry } of this.#held.values()) {
      const ids = topics.get(entry.topic);
      if (ids === undefined) topics.set(entry.topic, [entry.entryId]);
      else ids.push(entry.entryId);
    }
    return topics;
  }

  /** Gives entries up: they are another reader's. Resolves when no handler of theirs runs any more, or the time is over. */
  drop(topic: string, entryIds: Iterable<string>): void {
    for (const entryId of entryIds) {
      const key = keyOf({ topic, entryId });
      const held = this.#held.get(key);
      if (held === undefined) continue;
      held.abort.abort();
      this.#held.delete(key);
      const queue = this.#queues.get(this.#queueOf(held)) ?? [];
      const place = queue.indexOf(held);
      if (place >= 0) queue.splice(place, 1);
    }
    this.#wake();
  }

  /** True while a handler runs over an entry of the topic. */
  isBusy(topic: string): boolean {
    return this.#busy.has(topic);
  }

  /** Resolves when there is room again, or an entry has left. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** From now on nothing is handed out. */
  stop(): void {
    this.#isOpen = false;
    this.#resting.abort();
  }

  /** Stops, waits for the handlers under way, then gives back what is left. */
  async close(timeoutMs: number): Promise<void> {
    this.stop();
    const over = new AbortController();
    const all = Promise.allSettled([...this.#tasks]);
    await Promise.race([all, delay(timeoutMs, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
    for (const { abort } of this.#held.values()) abort.abort();
    for (const [topic, ids] of this.byTopic()) {
      await this.#deps.commands.letGo(topic, ids).catch(() => {});
    }
    this.#held.clear();
  }

  #queueOf({ entry }: Held): string {
    return this.#deps.settings.ordered ? entry.topic : "";
  }

  #enqueue(held: Held, first = false): void {
    const name = this.#queueOf(held);
    const queue = this.#queues.get(name) ?? [];
    this.#queues.set(name, queue);
    if (first) queue.unshift(held);
    else queue.push(held);
  }

  #pump(): void {
    const { concurrency, ordered } = this.#deps.settings;
    if (!this.#isOpen) return;
    for (const [name, queue] of this.#queues) {
      while (this.#running < concurrency && !(ordered && this.#busy.has(name))) {
        const held = queue.shift();
        if (held === undefined) break;
        if (ordered) this.#busy.add(name);
        this.#start(held, name);
      }
      // Whose turn it was is last at the next round.
      if (queue.length === 0) this.#queues.delete(name);
    }
  }

  #start(held: Held, name: string): void {
    this.#running++;
    const task = this.#work(held)
      .catch((error: unknown): undefined => {
        this.#deps.settings.onProblem({ kind: "redis", error });
      })
      .then((rest) => {
        this.#running--;
        const free = (): void => {
          this.#busy.delete(name);
          this.#pump();
          this.#wake();
        };
        // An ordered topic waits for what failed; others go on meanwhile.
        if (rest === undefined) free();
        else if (this.#deps.settings.ordered) this.#track(rest.over.finally(free));
        else {
          this.#track(rest.over);
          free();
        }
        this.#pump();
      });
    this.#track(task);
  }

  /** Hands the entry out once. Answers its rest where it failed and is to be tried again. */
  async #work(held: Held): Promise<Rest | undefined> {
    const { settings } = this.#deps;
    const { topic, entryId } = held.entry;
    if (held.attempt > settings.maxAttempts) {
      await this.#bury(held, new Error("its readers ended again and again while they had it"));
      return undefined;
    }
    try {
      await this.#handle(held);
    } catch (error) {
      if (held.abort.signal.aborted || !this.#isOpen) return undefined;
      if (held.attempt >= settings.maxAttempts) {
        await this.#bury(held, error);
        return undefined;
      }
      settings.onProblem({ kind: "failed", topic, entryId, attempt: held.attempt, error });
      return { over: this.#rest(held) };
    }
    if (this.#held.delete(keyOf(held.entry))) await this.#deps.acknowledge(topic, entryId);
    return undefined;
  }

  async #handle({ entry, attempt, abort }: Held): Promise<void> {
    const { topic, entryId, fields } = entry;
    await this.#deps.handler({ topic, entryId, attempt, fields, signal: abort.signal });
  }

  async #rest(held: Held): Promise<void> {
    const { commands, settings } = this.#deps;
    const signal = AbortSignal.any([held.abort.signal, this.#resting.signal]);
    const waitMs = backoffMs(settings.retry, held.attempt, Math.random);
    if (!(await waited(waitMs, signal))) return;
    held.attempt++;
    try {
      if (await commands.noteAttempt(held.entry, held.attempt)) {
        this.#enqueue(held, true);
        this.#pump();
        return;
      }
      this.drop(held.entry.topic, [held.entry.entryId]);
    } catch (error) {
      settings.onProblem({ kind: "redis", error });
      held.attempt--;
      this.#track(this.#rest(held));
    }
  }

  async #bury(held: Held, error: unknown): Promise<void> {
    const { commands, settings } = this.#deps;
    const { entry, attempt } = held;
    const { topic, entryId } = entry;
    const reason = error instanceof Error ? error.message : String(error);
    for (let failures = 1; ; failures++) {
      try {
        await commands.bury({ ...entry, attempt: Math.min(attempt, settings.maxAttempts) }, reason);
        break;
      } catch (failure) {
        settings.onProblem({ kind: "redis", error: failure });
        if (!(await waited(backoffMs(settings.retry, failures, Math.random), this.#resting.signal))) return;
      }
    }
    this.#held.delete(keyOf(entry));
    settings.onProblem({ kind: "dead", topic, entryId, attempt, error });
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    void task.finally(() => this.#tasks.delete(task));
  }
}

const keyOf = ({ topic, entryId }: Pick<Entry, "topic" | "entryId">): string => `${entryId} ${topic}`;

/** False where the signal ended it. */
const waited = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, undefined, { signal }).then(
    () => true,
    () => false,
  );
