import { type Backoff, backoffMs } from "./backoff.ts";
import { type Sleep, sleep as sleepByClock } from "./sleep.ts";

export interface LoopOptions {
  /**
   * Runs one iteration. The next one begins after the promise has settled.
   *
   * The signal aborts when the loop is disposed of. The step may then return or throw. At any other time, an error counts as a
   * failed iteration.
   */
  readonly step: (signal: AbortSignal) => Promise<unknown>;
  /** Time to wait after a successful iteration, unless the loop is woken. A function is called before each wait. */
  readonly everyMs: number | (() => number);
  /** Whether to wait for `everyMs` before the first iteration. Defaults to false, which starts it immediately. */
  readonly waitsFirst?: boolean;
  /** Minimum time between two iterations, even if the loop is woken. Defaults to 0. */
  readonly gapMs?: number;
  /** Backoff after failed iterations. By default, it grows from half a second to two seconds. */
  readonly retry?: Backoff;
  /** Called for the first of several consecutive failures. */
  readonly onFailing: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: () => void;
  /** Replaces the timer. Used in tests. */
  readonly sleep?: Sleep;
  readonly random?: () => number;
}

/** Disposal aborts the signal of the current step, and resolves after that step has ended. */
export interface Loop extends AsyncDisposable {
  /**
   * Starts the next iteration immediately. If an iteration is running, the next one starts after it has ended and `gapMs` has
   * passed.
   *
   * Has no effect while the loop waits after a failure, so that frequent calls cannot cause frequent failures.
   */
  readonly wake: () => void;
  readonly signal: AbortSignal;
}

const RETRY: Backoff = { initialMs: 500, maxMs: 2_000, factor: 2, jitter: 0.5 };

/** Runs a step repeatedly until disposal. The first iteration begins in a later microtask, so the step can use the returned loop. */
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
