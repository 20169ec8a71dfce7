/** So much at once of something: places, bytes. Who finds too little left waits, first come first served. */
export interface Limiter {
  /**
   * Resolves with what gives the weight back when it is disposed of, once however often. More than there is at all is given once
   * all the rest is back. Rejects where the signal aborts first.
   */
  readonly acquire: (weight: number, options: { readonly signal: AbortSignal }) => Promise<Disposable>;
}

interface Waiting {
  readonly weight: number;
  readonly start: () => void;
}

export function createLimiter(total: number): Limiter {
  let left = total;
  const queue: Waiting[] = [];

  const fits = (weight: number): boolean => weight <= left || left === total;

  function take(weight: number): Disposable {
    left -= weight;
    let isBack = false;
    return {
      [Symbol.dispose]() {
        if (isBack) return;
        isBack = true;
        left += weight;
        startNext();
      },
    };
  }

  function startNext(): void {
    for (let next = queue[0]; next !== undefined && fits(next.weight); next = queue[0]) {
      queue.shift();
      next.start();
    }
  }

  return {
    async acquire(weight, { signal }) {
      signal.throwIfAborted();
      if (queue.length === 0 && fits(weight)) return take(weight);
      const { promise, resolve, reject } = Promise.withResolvers<Disposable>();
      const giveUp = (): void => {
        queue.splice(queue.indexOf(waiting), 1);
        reject(signal.reason);
        startNext();
      };
      const start = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve(take(weight));
      };
      const waiting: Waiting = { weight, start };
      signal.addEventListener("abort", giveUp, { once: true });
      queue.push(waiting);
      return promise;
    },
  };
}
