import { setTimeout as delay } from "node:timers/promises";

/** Resolves after so many ms, or early where the signal aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** The longest that a timer of Node can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const sleep: Sleep = (ms, signal) =>
  delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => {});

/** Whether the work has resolved within the time; it goes on alone else. Rejects where the work does. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), sleep(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}
