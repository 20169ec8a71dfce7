/** A share of bytes that many draw on. Whoever finds too little left waits, first come first served. */
export interface ByteBudget {
  /** Resolves with what gives the bytes back. More than there is at all is given once all the rest is back. */
  readonly take: (bytes: number, options: { readonly signal: AbortSignal }) => Promise<() => void>;
}

interface Waiting {
  readonly bytes: number;
  readonly start: () => void;
}

export function createByteBudget(total: number): ByteBudget {
  let left = total;
  const queue: Waiting[] = [];

  function startNext(): void {
    for (let next = queue[0]; next !== undefined && (next.bytes <= left || left === total); next = queue[0]) {
      queue.shift();
      left -= next.bytes;
      next.start();
    }
  }

  return {
    take(bytes, { signal }) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const { promise, resolve, reject } = Promise.withResolvers<() => void>();
      let isBack = false;
      const giveBack = (): void => {
        if (isBack) return;
        isBack = true;
        left += bytes;
        startNext();
      };
      const giveUp = (): void => {
        const place = queue.indexOf(waiting);
        if (place < 0) return;
        queue.splice(place, 1);
        reject(signal.reason);
        startNext();
      };
      const start = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve(giveBack);
      };
      const waiting: Waiting = { bytes, start };
      signal.addEventListener("abort", giveUp, { once: true });
      queue.push(waiting);
      startNext();
      return promise;
    },
  };
}
