import { setTimeout as delay } from "node:timers/promises";
import { UnavailableError } from "./errors.ts";

/** Resolves after so many ms, or early where the signal aborts. Never rejects. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** The longest that a timer of Node can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const sleep: Sleep = (ms, signal) =>
  delay(Math.min(ms, MAX_TIMER_MS), undefined, { signal }).catch(() => {});

/** The outcome of the work; it goes on alone where it takes longer. @throws UnavailableError with that message when it is late */
export async function withTimeout<T>(ms: number, work: Promise<T>, message: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new UnavailableError(message)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the work has resolved within the time; it goes on alone else. Rejects where the work does. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  const over = new AbortController();
  try {
    return await Promise.race([work.then(() => true), sleep(ms, over.signal).then(() => false)]);
  } finally {
    over.abort();
  }
}

export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** The outcome of the work; rejects with the signal's reason where that aborts first, and the work goes on alone. */
export async function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** The outcome of work that the signal tells to end; undefined where it takes longer than the grace after that, and goes on alone. */
export async function withinGrace<T>(
  graceMs: number,
  work: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  const over = new AbortController();
  const told = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true, signal: over.signal });
    if (signal.aborted) resolve();
  });
  try {
    return await Promise.race([work, told.then(() => sleep(graceMs, over.signal)).then(() => undefined)]);
  } finally {
    over.abort();
  }
}
