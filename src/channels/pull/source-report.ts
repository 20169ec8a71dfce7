import type { SourceFacts } from "../../bus/sources/source-states.ts";

/** Minimum interval between writes of values that change with every event. */
const WRITE_EVERY_MS = 5_000;
/**
 * Delay before a new state or error is written. A poll changes its state several times in quick succession, and only the last state is
 * needed.
 */
const WRITE_SOON_MS = 100;
const RETRY_MS = 1_000;

/** Writes a source's state to Redis. Resolves to false, without writing, if another worker now runs the source. */
export type WriteFacts = (facts: SourceFacts) => Promise<boolean>;

/** Collects the facts about one run, and writes them in few writes. */
export class SourceReport {
  readonly #write: WriteFacts;
  #pending: SourceFacts = {};
  #timer: NodeJS.Timeout | undefined;
  #dueAtMs = Number.POSITIVE_INFINITY;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  /** The last write. Each write waits for the previous one. */
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(write: WriteFacts) {
    this.#write = write;
  }

  /** Adds facts to write. A new state or error is written soon, and all other facts are written later. */
  note(facts: SourceFacts): void {
    if (this.#isClosed) return;
    this.#pending = { ...this.#pending, ...facts };
    this.#schedule(
      isUrgent(facts) ? WRITE_SOON_MS : Math.max(0, this.#writtenAtMs + WRITE_EVERY_MS - performance.now()),
    );
  }

  /** Writes all pending facts and ignores later ones. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#writing;
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#writePending();
  }

  async #writePending(): Promise<void> {
    const facts = this.#pending;
    this.#pending = {};
    if (Object.keys(facts).length === 0) return;
    this.#writtenAtMs = performance.now();
    try {
      if (!(await this.#write(facts))) this.#isClosed = true;
    } catch {
      // Facts that were added during the failed write are newer, so they take precedence.
      this.#pending = { ...facts, ...this.#pending };
      this.#schedule(RETRY_MS);
    }
  }

  /** Schedules a write. A write that is already scheduled for an earlier time stays as it is. */
  #schedule(inMs: number): void {
    const atMs = performance.now() + inMs;
    if (this.#isClosed || this.#dueAtMs <= atMs) return;
    clearTimeout(this.#timer);
    this.#dueAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#dueAtMs = Number.POSITIVE_INFINITY;
      this.#writing = this.#writing.then(() => this.#writePending());
    }, inMs);
  }
}

const isUrgent = ({ state, lastError }: SourceFacts): boolean =>
  state !== undefined || lastError !== undefined;
