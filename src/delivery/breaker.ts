import { sleep } from "../lib/sleep.ts";
import { unlessAborted } from "../lib/wait.ts";

/** Keeps a handler that takes nothing from being called for every event: after failures in a row it is asked now and then. */
export interface Breaker {
  /** For how many ms no call should be made; 0: one may. */
  readonly waitMs: () => number;
  /** Resolves when a call may be made: at once, or when it is its turn to ask. Its result must be noted. */
  readonly admit: (options: { readonly signal: AbortSignal }) => Promise<void>;
  readonly noteTaken: () => void;
  readonly noteRefused: () => void;
}

export interface BreakerDeps {
  /** Told when it opens (nothing goes through any more) and closes. */
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
  /** The one call that asks; the others wait for its result. */
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
    noteRefused() {
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
