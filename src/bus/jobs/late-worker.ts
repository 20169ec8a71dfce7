import { sleep } from "../../lib/sleep.ts";

/** Interval at which the queue is checked for a first job. BullMQ's worker polls as often. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Starts a worker when there is work for it, because BullMQ takes several MB of memory that a gateway without jobs does not need.
 *
 * @param deps.hasJobs resolves with false while Redis is unreachable
 * @param deps.added resolves when this process uses the queue, so that its own first job does not wait for a check
 */
export function startLateWorker(deps: {
  readonly hasJobs: () => Promise<boolean>;
  readonly added: Promise<void>;
  /** Is called again after a while if it fails. */
  readonly start: () => Promise<AsyncDisposable>;
  readonly onError: (error: unknown) => void;
}): AsyncDisposable {
  const stopping = new AbortController();

  async function run(): Promise<AsyncDisposable | undefined> {
    const isNeeded = deps.added.then(() => true);
    while (!stopping.signal.aborted) {
      if (!(await Promise.race([isNeeded, deps.hasJobs()]))) {
        await Promise.race([isNeeded, sleep(CHECK_INTERVAL_MS, stopping.signal)]);
        continue;
      }
      try {
        return await deps.start();
      } catch (error) {
        deps.onError(error);
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
