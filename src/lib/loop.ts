import { type Backoff, backoffMs } from "./backoff.ts";
import { type Sleep, sleep as sleepByClock } from "./sleep.ts";

export interface LoopOptions {
  /**
   * One round; the next one begins only once it has settled. The signal aborts on disposal: a step may then return or throw.
   * Any other throw is a failure.
   */
  readonly step: (signal: AbortSignal) => Promise<unknown>;
  /** From the end of a round that succeeded to the next one, unless woken; a function is asked after each. */
  readonly everyMs: number | (() => number);
  /** The first round, too, waits for its interval; default false: it begins at once. */
  readonly waitsFirst?: boolean;
  /** The least time between two rounds, however often the loop is woken; default 0. */
  readonly gapMs?: number;
  /** Between a failure and the next round; default half a second at first, two seconds at most. */
  readonly retry?: Backoff;
  /** The first failure of several in a row. */
  readonly onFailing: (error: unknown) => void;
  /** The first success after failures. */
  readonly onRecovered?: () => void;
  /** For tests; default: by the clock. */
  readonly sleep?: Sleep;
  readonly random?: () => number;
}

/** Disposal aborts the signal of the step under way, and resolves when that has ended. */
export interface Loop extends AsyncDisposable {
  /**
   * There is something to do: the next round begins now, or as soon as the one under way has ended and `gapMs` is over. After a
   * failure it changes nothing: many wakes must not become as many failures.
   */
  readonly wake: () => void;
  /** Aborts on disposal. */
  readonly signal: AbortSignal;
}

const RETRY: Backoff = { initialMs: 500, maxMs: 2_000, factor: 2, jitter: 0.5 };

/** Runs a step again and again until it is disposed of. The first round begins in a later microtask, so that it may use the loop. */
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

  function rest(): Promise<void> {
    const restMs = typeof everyMs === "number" ? everyMs : everyMs();
    return sleep(Math.max(0, restMs - gapMs), woken.signal);
  }

  async function run(): Promise<void> {
    if (waitsFirst) await rest();
    while (!signal.aborted) {
      woken = new AbortController();
      await runStep();
      if (failures > 0) await sleep(backoffMs(retry, failures, random), signal);
      else {
        if (gapMs > 0) await sleep(gapMs, signal);
        await rest();
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
