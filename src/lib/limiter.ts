import { FairQueue } from "./fair-queue.ts";

/**
 * Limits the total weight in use at once, such as a number of slots or bytes. Callers beyond the limit wait, and are served
 * round-robin by owner.
 */
export interface Limiter {
  /**
   * Acquires weight. Dispose of the result to release it; further disposals have no effect. A weight above the limit is granted
   * once no other weight is in use. Rejects with the reason of the signal if it aborts first.
   *
   * Requests of the same owner (`whose`) are served in order, and do not delay those of other owners.
   */
  readonly acquire: (
    weight: number,
    options: { readonly signal: AbortSignal; readonly whose?: string },
  ) => Promise<HeldWeight>;
}

export interface HeldWeight extends Disposable {
  readonly shrinkTo: (weight: number) => void;
}

interface Waiting {
  readonly weight: number;
  readonly start: () => void;
  isGone: boolean;
}

export function createLimiter(total: number): Limiter {
  let left = total;
  const queue = new FairQueue<string, Waiting>();

  const fits = (weight: number): boolean => weight <= left || left === total;

  function take(weight: number): HeldWeight {
    left -= weight;
    let held = weight;
    const shrinkTo = (kept: number): void => {
      if (kept >= held) return;
      left += held - kept;
      held = kept;
      startNext();
    };
    return { shrinkTo, [Symbol.dispose]: () => shrinkTo(0) };
  }

  function startNext(): void {
    for (let next = queue.peek(); next && (next.isGone || fits(next.weight)); next = queue.peek()) {
      queue.shift();
      if (!next.isGone) next.start();
    }
  }

  return {
    async acquire(weight, { signal, whose = "" }) {
      signal.throwIfAborted();
      if (queue.size === 0 && fits(weight)) return take(weight);
      const { promise, resolve, reject } = Promise.withResolvers<HeldWeight>();
      const giveUp = (): void => {
        waiting.isGone = true;
        reject(signal.reason);
        startNext();
      };
      const start = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve(take(weight));
      };
      const waiting: Waiting = { weight, start, isGone: false };
      signal.addEventListener("abort", giveUp, { once: true });
      queue.push(whose, waiting);
      return promise;
    },
  };
}
