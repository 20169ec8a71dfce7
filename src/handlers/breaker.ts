import { sleep } from "../lib/sleep.ts";
import { unlessAborted } from "../lib/wait.ts";

/** Circuit breaker of a handler. After repeated failures, it only allows a single trial call from time to time. */
export type Breaker = ReturnType<typeof createBreaker>;

const FAILURES = 5;
const FIRST_WAIT_MS = 5_000;
const MOST_WAIT_MS = 300_000;

export function createBreaker({
  onChange,
  firstWaitMs = FIRST_WAIT_MS,
}: {
  /** Called when the breaker opens, which blocks calls, and when it closes. */
  readonly onChange: (isOpen: boolean) => void;
  readonly firstWaitMs?: number;
}) {
  let failures = 0;
  let openUntilMs = 0;
  let isOpen = false;
  /** Result of the current trial call, for which all other callers wait. */
  let asking: PromiseWithResolvers<void> | undefined;

  /** Returns the time until the next call is allowed, in ms. 0 means immediately. */
  const waitMs = (): number => (isOpen ? Math.max(0, openUntilMs - performance.now()) : 0);

  function settle(): void {
    asking?.resolve();
    asking = undefined;
  }

  return {
    waitMs,
    /** Waits until the handler may be called. The caller must report the result with `noteTaken` or `recordRejection`. */
    async admit({ signal }: { readonly signal: AbortSignal }): Promise<void> {
      while (isOpen) {
        signal.throwIfAborted();
        const leftMs = waitMs();
        if (leftMs > 0) await sleep(leftMs, signal);
        else if (asking === undefined) {
          asking = Promise.withResolvers();
          return;
        } else await unlessAborted(signal, asking.promise);
      }
    },
    noteTaken(): void {
      failures = 0;
      if (isOpen) {
        isOpen = false;
        onChange(false);
      }
      settle();
    },
    recordRejection(): void {
      failures++;
      if (failures >= FAILURES) {
        openUntilMs = performance.now() + Math.min(MOST_WAIT_MS, firstWaitMs * 2 ** (failures - FAILURES));
        if (!isOpen) {
          isOpen = true;
          onChange(true);
        }
      }
      settle();
    },
  };
}
