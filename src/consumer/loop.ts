import { sleep } from "../lib/sleep.ts";

interface RetryOptions {
  readonly signal: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/**
 * Repeats `step` until the signal aborts. `step` returns the pause in ms before its next call.
 *
 * Errors are reported and do not end the loop.
 */
export async function repeat(
  step: () => Promise<number>,
  { signal, onError, afterErrorMs }: RetryOptions & { readonly afterErrorMs: number },
): Promise<void> {
  while (!signal.aborted) {
    const pauseMs = await step().catch((error: unknown) => {
      if (!signal.aborted) onError(error);
      return afterErrorMs;
    });
    if (pauseMs > 0) await sleep(pauseMs, signal);
  }
}

/** Retries a task until it succeeds. Returns false if the signal aborts first. */
export async function retry(
  task: () => Promise<void>,
  { signal, onError, backoffMs }: RetryOptions & { readonly backoffMs: (failures: number) => number },
): Promise<boolean> {
  for (let failures = 1; ; failures++) {
    try {
      await task();
      return true;
    } catch (error) {
      onError(error);
      await sleep(backoffMs(failures), signal);
      if (signal.aborted) return false;
    }
  }
}
