/** Parts of the timeout. A suspension costs at most one part. */
const PARTS = 10;

/**
 * Returns a signal that aborts after `ms` in which this process was running. Unlike `AbortSignal.timeout`, it does not count the time in
 * which the process or the machine was suspended. A request that was in flight before the suspension then has time to end.
 *
 * @returns the signal, and a disposal that stops the timer
 */
export function awakeTimeout(ms: number): Disposable & { readonly signal: AbortSignal } {
  const ending = new AbortController();
  let left = PARTS;
  const timer = setInterval(() => {
    if (--left > 0) return;
    clearInterval(timer);
    ending.abort(new DOMException(`no response in ${ms} ms`, "TimeoutError"));
  }, ms / PARTS);
  return { signal: ending.signal, [Symbol.dispose]: () => clearInterval(timer) };
}
