import type { SourceFacts } from "../../bus/sources/source-states.ts";

/** Facts that change with every event are written no more often. */
const WRITE_EVERY_MS = 5_000;
/** States and errors are written so soon: a poll has several in that time, of which the last one counts. */
const WRITE_SOON_MS = 100;
const RETRY_MS = 1_000;

/** Answers false where the source is another's by now: the rest is none of its business. */
export type WriteFacts = (facts: SourceFacts) => Promise<boolean>;

/** Brings the state of one run to where people see it. */
export class SourceReport {
  readonly #write: WriteFacts;
  #pending: SourceFacts = {};
  #timer: NodeJS.Timeout | undefined;
  /** When the timer is over. */
  #dueAtMs = Number.POSITIVE_INFINITY;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  #writing: Promise<void> | undefined;
  #isClosed = false;

  constructor(write: WriteFacts) {
    this.#write = write;
  }

  /** A state or an error is written soon, with what else is told until then; all else a little later. */
  note(facts: SourceFacts): void {
    if (this.#isClosed) return;
    this.#pending = { ...this.#pending, ...facts };
    if (isUrgent(facts)) this.#schedule(WRITE_SOON_MS);
    else if (this.#writing === undefined)
      this.#schedule(Math.max(0, this.#writtenAtMs + WRITE_EVERY_MS - performance.now()));
  }

  /** Writes what is left, once; nothing is written afterwards. */
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
      // Facts that were told since are newer.
      this.#pending = { ...facts, ...this.#pending };
      if (!this.#isClosed) this.#schedule(RETRY_MS);
    }
  }

  #writeNow(): void {
    if (this.#writing !== undefined) return;
    this.#writing = this.#writePending().finally(() => {
      this.#writing = undefined;
      // One that failed waits longer.
      if (this.#timer !== undefined || this.#isClosed || Object.keys(this.#pending).length === 0) return;
      this.#schedule(isUrgent(this.#pending) ? WRITE_SOON_MS : WRITE_EVERY_MS);
    });
  }

  /** No later than so; a sooner write stays. */
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
