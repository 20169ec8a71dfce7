import { type Backoff, backoffMs } from "./backoff.ts";
import { type Sleep, sleep as sleepByClock } from "./sleep.ts";

export interface LoopOptions {
  /**
   * Runs one iteration. The next one begins after it has settled. The signal aborts on disposal, after which the step may return or
   * throw. Throwing at any other time counts as a failure.
   */
  readonly step: (signal: AbortSignal) => Promise<unknown>;
  /** Time between the end of a successful iteration and the next one, unless the loop is woken. A function is called each time. */
  readonly everyMs: number | (() => number);
  /** Whether to wait for the interval before the first iteration. Defaults to false. */
  readonly waitsFirst?: boolean;
  /** Minimum time between two iterations, even if the loop is woken. Defaults to 0. */
  readonly gapMs?: number;
  /** Backoff between a failure and the next iteration. Defaults to half a second, growing to two seconds. */
  readonly retry?: Backoff;
  /** Called for the first of several consecutive failures. */
  readonly onFailing: (error: unknown) => void;
  /** Called for the first success after a failure. */
  readonly onRecovered?: () => void;
  /** Replaces the timer in tests. */
  readonly sleep?: Sleep;
  readonly random?: () => number;
}

/** A running loop. Disposal aborts the signal of the current step and resolves after that step has ended. */
export interface Loop extends AsyncDisposable {
  /**
   * Starts the next iteration now, or after the current one has ended and `gapMs` has passed. Has no effect after a failure, so that
   * many calls do not cause many failures.
   */
  readonly wake: () => void;
  readonly signal: AbortSignal;
}

const RETRY: Backoff = { initialMs: 500, maxMs: 2_000, factor: 2, jitter: 0.5 };

/** Runs a step repeatedly until disposal. The first iteration begins in a later microtask, so that the step can use the loop. */
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
