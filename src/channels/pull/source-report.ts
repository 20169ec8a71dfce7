import type { SourceFacts } from "../../bus/sources/source-states.ts";

/** Minimum interval between writes of facts that change with every event. */
const WRITE_EVERY_MS = 5_000;
/**
 * Delay before a state or an error is written. A poll changes its state several times within this delay, and only the last state is
 * written.
 */
const WRITE_SOON_MS = 100;
const RETRY_MS = 1_000;

/** Writes facts about a source to Redis. Resolves to false if another worker owns the source now. No facts are written after that. */
export type WriteFacts = (facts: SourceFacts) => Promise<boolean>;

export class SourceReport {
  readonly #write: WriteFacts;
  #pending: SourceFacts = {};
  #timer: NodeJS.Timeout | undefined;
  #dueAtMs = Number.POSITIVE_INFINITY;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(write: WriteFacts) {
    this.#write = write;
  }

  /** Adds facts. A state or an error is written soon, together with all pending facts. Other facts are written later. */
  note(facts: SourceFacts): void {
    if (this.#isClosed) return;
    this.#pending = { ...this.#pending, ...facts };
    if (isUrgent(facts)) this.#schedule(WRITE_SOON_MS);
    else if (this.#writing === undefined)
      this.#schedule(Math.max(0, this.#writtenAtMs + WRITE_EVERY_MS - performance.now()));
  }

  /** Writes the pending facts once. Later facts are dropped. */
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
      // Newer facts take precedence over the ones whose write failed.
      this.#pending = { ...facts, ...this.#pending };
      if (!this.#isClosed) this.#schedule(RETRY_MS);
    }
  }

  #writeNow(): void {
    if (this.#writing !== undefined) return;
    this.#writing = this.#writePending().finally(() => {
      this.#writing = undefined;
      // If a write has failed, its retry is already scheduled.
      if (this.#timer !== undefined || this.#isClosed || Object.keys(this.#pending).length === 0) return;
      this.#schedule(isUrgent(this.#pending) ? WRITE_SOON_MS : WRITE_EVERY_MS);
    });
  }

  /** If a write is already scheduled for an earlier time, it is not moved. */
  #schedule(inMs: number): void {
    const atMs = performance.now() + inMs;
    if (this.#timer !== undefined && this.#dueAtMs <= atMs) return;
    clearTimeout(this.#timer);
    this.#dueAtMs = atMs;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#writeNow();
    }, inMs);
  }
}

const isUrgent = ({ state, lastError }: SourceFacts): boolean =>
  state !== undefined || lastError !== undefined;
