import type { Commands } from "./commands.ts";
import { retry } from "./loop.ts";

const RETRY_MS = 250;
const MAX_IDS = 500;

/**
 * Acknowledges handled entries, and retries until Redis takes them. One call for each topic is under way at a time: what is handled
 * meanwhile goes together in the next.
 */
export class Acknowledger {
  readonly #commands: Pick<Commands, "acknowledge">;
  readonly #onError: (error: unknown) => void;
  readonly #closing = new AbortController();
  /** Called when Redis has taken some. */
  onTaken: () => void = () => {};
  #pending = new Map<string, string[]>();
  /** Those that wait until Redis has taken what is pending. */
  #waiting: (() => void)[] = [];
  #count = 0;
  #running: Promise<void> | undefined;

  constructor(commands: Pick<Commands, "acknowledge">, onError: (error: unknown) => void) {
    this.#commands = commands;
    this.#onError = onError;
  }

  /** Entries that were handled and that Redis has not taken yet. */
  get outstanding(): number {
    return this.#count;
  }

  add(topic: string, entryId: string): void {
    this.#count++;
    const ids = this.#pending.get(topic);
    if (ids === undefined) this.#pending.set(topic, [entryId]);
    else ids.push(entryId);
    this.#running ??= this.#run();
  }

  /** The same; `then` is called when Redis has taken it. */
  addThen(topic: string, entryId: string, then: () => void): void {
    this.add(topic, entryId);
    this.#waiting.push(then);
  }

  /** Resolves when Redis has taken all that were added, or `close` was called. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** No more retries: entries whose acknowledgement fails from now on are delivered again later. */
  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    // What this turn of the event loop handles goes together.
    await new Promise(setImmediate);
    while (this.#pending.size > 0) {
      const [batch, waiting] = [this.#pending, this.#waiting];
      this.#pending = new Map();
      this.#waiting = [];
      await Promise.all([...batch].map(([topic, ids]) => this.#send(topic, ids)));
      for (const then of waiting) then();
      this.onTaken();
    }
    this.#running = undefined;
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
