import { setTimeout as delay } from "node:timers/promises";

/** Waits for `ms`, or until the signal aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Maximum delay of a Node.js timer, in ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const sleep: Sleep = (ms, signal) =>
  delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => {});

/** Returns true if `work` ends within `ms`, otherwise false. Rejects if `work` fails in time, and never cancels the work. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), sleep(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}
