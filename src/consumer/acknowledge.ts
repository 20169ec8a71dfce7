import type { Commands } from "./commands.ts";
import { retry } from "./loop.ts";

const RETRY_MS = 250;
const MAX_IDS = 500;

interface Line {
  /** Ids of entries that were handled after the current call was sent. */
  ids: string[];
  /** Callbacks to run once Redis has acknowledged `ids`. */
  waiting: (() => void)[];
  /** Ids of the entries in the call that is in flight. */
  sent: readonly string[];
}

/**
 * Acknowledges handled entries and retries until Redis accepts. Entries that are handled during a call share the next call of their
 * topic.
 *
 * Topics are independent, because a Redis Cluster may lose the node of only some topics.
 */
export class Acknowledger {
  readonly #commands: Pick<Commands, "acknowledge">;
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  /** Called after Redis has acknowledged a batch. */
  onTaken: () => void = () => {};
  readonly #lines = new Map<string, Line>();
  readonly #running = new Set<Promise<void>>();
  #count = 0;

  constructor(commands: Pick<Commands, "acknowledge">, onError: (error: unknown) => void) {
    this.#commands = commands;
    this.#onError = onError;
  }

  /** Number of handled entries that Redis has not acknowledged yet. */
  get outstanding(): number {
    return this.#count;
  }

  /** Returns true if the entry was handled, but Redis has not acknowledged it yet. */
  holds(topic: string, entryId: string): boolean {
    const line = this.#lines.get(topic);
    return line !== undefined && (line.ids.includes(entryId) || line.sent.includes(entryId));
  }

  add(topic: string, entryId: string): void {
    this.#lineOf(topic).ids.push(entryId);
    this.#count++;
  }

  /** Adds an entry, and calls `then` once Redis has acknowledged it. */
  addThen(topic: string, entryId: string, then: () => void): void {
    this.add(topic, entryId);
    this.#lineOf(topic).waiting.push(then);
  }

  /** Resolves once Redis has acknowledged all entries, or after `close`. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** Stops retrying. Redis later delivers entries again if their acknowledgement fails after this call. */
  close(): void {
    this.#closing.abort();
  }

  #lineOf(topic: string): Line {
    let line = this.#lines.get(topic);
    if (line === undefined) {
      line = { ids: [], waiting: [], sent: [] };
      this.#lines.set(topic, line);
      const running = this.#run(topic, line);
      this.#running.add(running);
      void running.then(() => this.#running.delete(running));
    }
    return line;
  }

  async #run(topic: string, line: Line): Promise<void> {
    // Wait until the end of this event loop iteration, so that all entries handled in it share one call.
    await new Promise(setImmediate);
    while (line.ids.length > 0) {
      const { ids, waiting } = line;
      line.sent = ids;
      line.ids = [];
      line.waiting = [];
      await this.#send(topic, ids);
      line.sent = [];
      for (const then of waiting) then();
      this.onTaken();
    }
    this.#lines.delete(topic);
  }

  async #send(topic: string, ids: readonly string[]): Promise<void> {
    const retries = { signal: this.#closing.signal, onError: this.#onError, backoffMs: () => RETRY_MS };
    for (let at = 0; at < ids.length; at += MAX_IDS) {
      const some = ids.slice(at, at + MAX_IDS);
      await retry(() => this.#commands.acknowledge(topic, some), retries);
      this.#count -= some.length;
    }
  }
}
