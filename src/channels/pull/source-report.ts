import type { SourceFacts } from "../../bus/sources/source-states.ts";

/** Facts that change with every event are written no more often. */
const WRITE_EVERY_MS = 5_000;
/** States and errors are written so soon: a poll has several in that time, of which the last one counts. */
const WRITE_SOON_MS = 100;
const TRY_AGAIN_MS = 1_000;

/** Brings the state of one run to where people see it. @param write answers false where the source is another's by now: the rest is none of its business. */
export function createSourceReport(write: (facts: SourceFacts) => Promise<boolean>) {
  let waiting: SourceFacts = {};
  let timer: NodeJS.Timeout | undefined;
  /** When the timer is over. */
  let dueAtMs = Number.POSITIVE_INFINITY;
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> | undefined;
  let isClosed = false;

  async function writeWaiting(): Promise<void> {
    const facts = waiting;
    waiting = {};
    if (Object.keys(facts).length === 0) return;
    writtenAtMs = performance.now();
    try {
      if (!(await write(facts))) isClosed = true;
    } catch {
      // Facts that were told since are newer.
      waiting = { ...facts, ...waiting };
      if (!isClosed) schedule(TRY_AGAIN_MS);
    }
  }

  function writeNow(): void {
    if (writing !== undefined) return;
    writing = writeWaiting().finally(() => {
      writing = undefined;
      // One that failed waits longer.
      if (timer !== undefined || isClosed || Object.keys(waiting).length === 0) return;
      schedule(isUrgent(waiting) ? WRITE_SOON_MS : WRITE_EVERY_MS);
    });
  }

  /** No later than so; a sooner write stays. */
  function schedule(inMs: number): void {
    const atMs = performance.now() + inMs;
    if (timer !== undefined && dueAtMs <= atMs) return;
    clearTimeout(timer);
    dueAtMs = atMs;
    timer = setTimeout(() => {
      timer = undefined;
      writeNow();
    }, inMs);
  }

  return {
    /** A state or an error is written soon, with what else is told until then; all else a little later. */
    note(facts: SourceFacts): void {
      if (isClosed) return;
      waiting = { ...waiting, ...facts };
      if (isUrgent(facts)) schedule(WRITE_SOON_MS);
      else if (writing === undefined) schedule(Math.max(0, writtenAtMs + WRITE_EVERY_MS - performance.now()));
    },
    /** Writes what is left, once; nothing is written afterwards. */
    async close(): Promise<void> {
      clearTimeout(timer);
      await writing;
      if (isClosed) return;
      isClosed = true;
      clearTimeout(timer);
      await writeWaiting();
    },
  };
}

const isUrgent = ({ state, lastError }: SourceFacts): boolean =>
  state !== undefined || lastError !== undefined;
