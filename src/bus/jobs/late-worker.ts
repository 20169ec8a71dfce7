import { sleep } from "../../lib/sleep.ts";
import { unlessAborted } from "../../lib/wait.ts";

/** Interval at which the queue is checked for a first job. The first job of another gateway starts up to this much later. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Starts a worker when there is work for it, because BullMQ takes several MB of memory that a gateway without jobs does not need.
 *
 * @param deps.used aborts when this process uses the queue, so that its own first job does not wait for a check
 * @param deps.onError is called at the first of several errors in a row
 */
export function startLateWorker(deps: {
  readonly hasJobs: () => Promise<boolean>;
  readonly used: AbortSignal;
  readonly start: () => Promise<AsyncDisposable>;
  readonly onError: (error: unknown) => void;
}): AsyncDisposable {
  const { hasJobs, used, start, onError } = deps;
  const stopping = new AbortController();
  const woken = AbortSignal.any([used, stopping.signal]);
  let isFailing = false;

  function report(error: unknown): void {
    if (!isFailing && !stopping.signal.aborted) onError(error);
    isFailing = true;
  }

  async function isNeeded(): Promise<boolean> {
    try {
      const found = await unlessAborted(woken, hasJobs());
      isFailing = false;
      return found;
    } catch (error) {
      if (!woken.aborted) report(error);
      return false;
    }
  }

  async function run(): Promise<AsyncDisposable | undefined> {
    while (!(used.aborted || (await isNeeded()) || stopping.signal.aborted))
      await sleep(CHECK_INTERVAL_MS, woken);
    while (!stopping.signal.aborted) {
      try {
        return await start();
      } catch (error) {
        report(error);
        await sleep(CHECK_INTERVAL_MS, stopping.signal);
      }
    }
    return undefined;
  }

  const running = run();
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await (await running)?.[Symbol.asyncDispose]();
    },
  };
}
