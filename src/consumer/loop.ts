import { setTimeout as delay } from "node:timers/promises";

interface RetryOptions {
  readonly signal: AbortSignal;
  readonly onError: (error: unknown) => void;
}

/** False where the signal ended the wait. */
export const pause = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, undefined, { signal }).then(
    () => true,
    () => false,
  );

/** Runs a step until the signal aborts. The step answers the pause after it, in ms; one that fails is reported and repeated. */
export async function repeat(
  step: () => Promise<number>,
  { signal, onError, afterErrorMs }: RetryOptions & { readonly afterErrorMs: number },
): Promise<void> {
  while (!signal.aborted) {
    const pauseMs = await step().catch((error: unknown) => {
      if (!signal.aborted) onError(error);
      return afterErrorMs;
    });
    if (pauseMs > 0) await pause(pauseMs, signal);
  }
}

/** Tries until it succeeds; false where the signal aborted first. */
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
      if (!(await pause(backoffMs(failures), signal))) return false;
    }
  }
}
