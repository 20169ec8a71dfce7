import { setTimeout as delay } from "node:timers/promises";

/** Resolves after `ms`, or earlier when the signal aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Maximum delay of a Node.js timer, in ms. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const sleep: Sleep = (ms, signal) =>
  delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => {});

/**
 * Resolves with true if `work` ends within `ms`, otherwise with false. Rejects if `work` rejects within `ms`. Does not cancel the
 * work.
 */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), sleep(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}
