import { UnavailableError } from "./errors.ts";

/**
 * Resolves with the result of `work`. Does not cancel the work after a timeout.
 *
 * @throws UnavailableError with `message` after `ms`
 */
export async function withTimeout<T>(ms: number, work: Promise<T>, message: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new UnavailableError(message)), ms);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

export const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** Resolves with the result of `work`, or rejects with `signal.reason` if the signal aborts first. Does not cancel the work. */
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

/**
 * Resolves with the result of `work`. Resolves with `undefined` if the work is still running `graceMs` after the signal aborted.
 */
export function withinGrace<T>(
  graceMs: number,
  work: Promise<T>,
  signal: AbortSignal,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const onAbort = (): void => {
      timer = setTimeout(resolve, graceMs, undefined);
    };
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(end);
  });
}
