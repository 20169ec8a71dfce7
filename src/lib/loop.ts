import { type Backoff, backoffMs } from "./backoff.ts";
import { type Sleep, sleep as sleepByClock } from "./sleep.ts";

export interface LoopOptions {
  /**
   * Runs one iteration of the loop. The next iteration starts after the promise has settled. The signal aborts when the loop is disposed
   * of, and an error counts as a failed iteration until then.
   */
  readonly step: (signal: AbortSignal) => Promise<unknown>;
  /** Time in ms to wait after a successful iteration. `wake` ends the wait early, and a function is called before each wait. */
  readonly everyMs: number | (() => number);
  /** Whether to wait for `everyMs` before the first iteration. Defaults to false. */
  readonly waitsFirst?: boolean;
  /** Minimum time in ms between two iterations, even if `wake` is called. Defaults to 0. */
  readonly gapMs?: number;
  /** Backoff after failed iterations. By default, the wait grows from half a second to two seconds. */
  readonly retry?: Backoff;
  /** Called for the first of several consecutive failures. */
  readonly onFailing: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: () => void;
  /** Replaces the timer. Used in tests. */
  readonly sleep?: Sleep;
  readonly random?: () => number;
}

/** A loop that runs until disposal. Disposal aborts the signal of the current iteration, and waits for that iteration to end. */
export interface Loop extends AsyncDisposable {
  /**
   * Starts the next iteration as soon as the current one has ended and `gapMs` has passed. Has no effect during the wait after a
   * failure, so that frequent calls cannot cause frequent failures.
   */
  readonly wake: () => void;
  readonly signal: AbortSignal;
}

const RETRY: Backoff = { initialMs: 500, maxMs: 2_000, factor: 2, jitter: 0.5 };

/**
 * Runs a step repeatedly until disposal. The first iteration starts after this function returns, so the step can use the returned
 * loop.
 */
export function startLoop(options: LoopOptions): Loop {
  const { step, everyMs, waitsFirst = false, gapMs = 0, retry = RETRY, onFailing, onRecovered } = options;
  const { sleep = sleepByClock, random = Math.random } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let woken = new AbortController();
  let failures = 0;

  async function runStep(): Promise<void> {
    try {
      await step(signal);
      if (failures > 0) onRecovered?.();
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      if (failures === 1) onFailing(error);
    }
  }

  function waitForInterval(): Promise<void> {
    const restMs = typeof everyMs === "number" ? everyMs : everyMs();
    return sleep(Math.max(0, restMs - gapMs), woken.signal);
  }

  async function run(): Promise<void> {
    if (waitsFirst) await waitForInterval();
    while (!signal.aborted) {
      woken = new AbortController();
      await runStep();
      if (failures > 0) await sleep(backoffMs(retry, failures, random), signal);
      else {
        if (gapMs > 0) await sleep(gapMs, signal);
        await waitForInterval();
      }
    }
  }

  const running = Promise.resolve().then(run);
  return {
    signal,
    wake: () => woken.abort(),
    async [Symbol.asyncDispose]() {
      stopping.abort();
      woken.abort();
      await running;
    },
  };
}
