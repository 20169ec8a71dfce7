/**
 * Virtual time for simulated processes. Code that runs inside a process, and everything that it starts asynchronously, uses the
 * clock and timers of that process. All other code keeps real time.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createRequire, syncBuiltinESMExports } from "node:module";

/** Provides the virtual clock, timers and random numbers of a process. */
export interface TimeKeeper {
  /** Monotonic clock in ms. */
  readonly nowMs: () => number;
  readonly random: () => number;
  readonly startTimer: (delayMs: number, run: () => void) => VirtualTimer;
}

export class VirtualTimer {
  isOver = false;
  ref = (): this => this;
  unref = (): this => this;
  hasRef = (): boolean => true;
  [Symbol.dispose](): void {
    this.isOver = true;
  }
}

const current = new AsyncLocalStorage<TimeKeeper>();
const promises: typeof import("node:timers/promises") = createRequire(import.meta.url)(
  "node:timers/promises",
);
const real = {
  setTimeout,
  clearTimeout,
  setImmediate,
  clearImmediate,
  setInterval,
  clearInterval,
  delay: promises.setTimeout,
  now: performance.now.bind(performance),
  random: Math.random,
};

export const within = <T>(keeper: TimeKeeper, run: () => T): T => current.run(keeper, run);

/** Resolves after all pending promise callbacks have run. */
export const settled = (): Promise<void> => new Promise((resolve) => real.setImmediate(resolve));

/** Replaces the global clocks and timers until it is disposed. */
export function installVirtualTime(): Disposable {
  const timer =
    (fallback: (...all: never[]) => unknown, hasDelay: boolean) =>
    (run: (...rest: unknown[]) => void, ...rest: unknown[]): unknown => {
      const keeper = current.getStore();
      if (keeper === undefined) return fallback(...([run, ...rest] as never[]));
      const [delayMs, ...args] = hasDelay ? rest : [0, ...rest];
      return keeper.startTimer(hasDelay ? Math.max(1, Number(delayMs ?? 1)) : 0, () => run(...args));
    };
  const clear =
    (fallback: (timer: never) => void) =>
    (timer: unknown): void =>
      timer instanceof VirtualTimer ? timer[Symbol.dispose]() : fallback(timer as never);

  function delay<T>(ms = 0, value?: T, options: { readonly signal?: AbortSignal } = {}): Promise<T> {
    const keeper = current.getStore();
    if (keeper === undefined) return real.delay(ms, value as T, options);
    const { signal } = options;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = (): void => {
        started[Symbol.dispose]();
        reject(signal?.reason);
      };
      const started = keeper.startTimer(Math.max(1, ms), () => {
        signal?.removeEventListener("abort", abort);
        resolve(value as T);
      });
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  function interval(run: () => void, ms: number): unknown {
    const keeper = current.getStore();
    if (keeper === undefined) return real.setInterval(run, ms);
    const repeated = new VirtualTimer();
    const tick = (): void => {
      if (repeated.isOver) return;
      keeper.startTimer(ms, tick);
      run();
    };
    keeper.startTimer(ms, tick);
    return repeated;
  }

  const replaceGlobals = (delayed: unknown, globals: object, now: (() => number) | undefined): void => {
    Object.assign(globalThis, globals);
    Object.assign(promises, { setTimeout: delayed });
    syncBuiltinESMExports();
    Math.random = now === undefined ? real.random : () => (current.getStore()?.random ?? real.random)();
    if (now === undefined) Reflect.deleteProperty(performance, "now");
    else Object.defineProperty(performance, "now", { value: now, configurable: true });
  };
  replaceGlobals(
    delay,
    {
      setTimeout: timer(real.setTimeout, true),
      clearTimeout: clear(real.clearTimeout),
      setImmediate: timer(real.setImmediate, false),
      setInterval: interval,
      clearInterval: clear(real.clearInterval),
      clearImmediate: clear(real.clearImmediate),
    },
    () => current.getStore()?.nowMs() ?? real.now(),
  );
  return {
    [Symbol.dispose]() {
      const { delay: _, now: __, random: ___, ...globals } = real;
      replaceGlobals(real.delay, globals, undefined);
    },
  };
}
