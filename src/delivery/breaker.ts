import { sleep } from "../lib/sleep.ts";
import { unlessAborted } from "../lib/wait.ts";

/** A circuit breaker for a handler. After several failures in a row, it lets only occasional trial calls through. */
export interface Breaker {
  /** Returns the time in ms until the next call is allowed. 0 means that it is allowed now. */
  readonly waitMs: () => number;
  /** Resolves when the caller may call the handler. The caller must then report the result with `noteTaken` or `recordRejection`. */
  readonly admit: (options: { readonly signal: AbortSignal }) => Promise<void>;
  readonly noteTaken: () => void;
  readonly recordRejection: () => void;
}

export interface BreakerDeps {
  /** Called when the breaker opens (calls are blocked) or closes. */
  readonly onChange: (isOpen: boolean) => void;
  readonly firstWaitMs?: number;
}

const FAILURES = 5;
const FIRST_WAIT_MS = 5_000;
const MOST_WAIT_MS = 300_000;

export function createBreaker({ onChange, firstWaitMs = FIRST_WAIT_MS }: BreakerDeps): Breaker {
  let failures = 0;
  let openUntilMs = 0;
  let isOpen = false;
  /** The trial call in flight. All other callers wait for its result. */
  let asking: PromiseWithResolvers<void> | undefined;

  const waitMs = (): number => (isOpen ? Math.max(0, openUntilMs - performance.now()) : 0);

  function settle(): void {
    asking?.resolve();
    asking = undefined;
  }

  return {
    waitMs,
    async admit({ signal }) {
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
    noteTaken() {
      failures = 0;
      if (isOpen) {
        isOpen = false;
        onChange(false);
      }
      settle();
    },
    recordRejection() {
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
