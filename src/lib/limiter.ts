import { FairQueue } from "./fair-queue.ts";

/** So much at once of something: places, bytes. Those who find too little left wait, and take turns. */
export interface Limiter {
  /**
   * Resolves with what gives the weight back when it is disposed of, once however often. More than there is at all is given once
   * all the rest is back. Rejects where the signal aborts first. Whose it is: one's things wait in their order, and those of others
   * wait no longer for them, however many they are.
   */
  readonly acquire: (
    weight: number,
    options: { readonly signal: AbortSignal; readonly whose?: string },
  ) => Promise<HeldWeight>;
}

export interface HeldWeight extends Disposable {
  /** Gives back what is more than that. */
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
