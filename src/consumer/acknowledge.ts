import type { Commands } from "./commands.ts";
import { retry } from "./loop.ts";

const RETRY_MS = 250;
const MAX_IDS = 500;

/** What is to be acknowledged of one topic. */
interface Line {
  /** Handled since the call under way began. */
  ids: string[];
  /** Those that wait until Redis has taken these. */
  waiting: (() => void)[];
  /** Of the call under way. */
  sent: readonly string[];
}

/**
 * Acknowledges handled entries, and retries until Redis takes them. One call for each topic is under way at a time: what is handled
 * meanwhile goes together in the next. No topic waits for another: in a Cluster the part of one may be away.
 */
export class Acknowledger {
  readonly #commands: Pick<Commands, "acknowledge">;
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  /** Called when Redis has taken some. */
  onTaken: () => void = () => {};
  readonly #lines = new Map<string, Line>();
  readonly #running = new Set<Promise<void>>();
  #count = 0;

  constructor(commands: Pick<Commands, "acknowledge">, onError: (error: unknown) => void) {
    this.#commands = commands;
    this.#onError = onError;
  }

  /** Entries that were handled and that Redis has not taken yet. */
  get outstanding(): number {
    return this.#count;
  }

  /** Whether the entry is one of those. */
  holds(topic: string, entryId: string): boolean {
    const line = this.#lines.get(topic);
    return line !== undefined && (line.ids.includes(entryId) || line.sent.includes(entryId));
  }

  add(topic: string, entryId: string): void {
    this.#lineOf(topic).ids.push(entryId);
    this.#count++;
  }

  /** The same; `then` is called when Redis has taken it. */
  addThen(topic: string, entryId: string, then: () => void): void {
    this.add(topic, entryId);
    this.#lineOf(topic).waiting.push(then);
  }

  /** Resolves when Redis has taken all that were added, or `close` was called. */
  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }

  /** No more retries: entries whose acknowledgement fails from now on are delivered again later. */
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
    // What this turn of the event loop handles goes together.
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
