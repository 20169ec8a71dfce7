/** So many at once; the others wait in order of arrival. */
export interface Semaphore {
  /** Resolves with what gives the place back; rejects where `signal` aborts first. */
  readonly acquire: (options: { readonly signal: AbortSignal }) => Promise<Disposable>;
}

export function createSemaphore(places: number): Semaphore {
  let free = places;
  const waiting = new Set<() => void>();

  function release(): void {
    free++;
    const [first] = waiting;
    first?.();
  }

  return {
    async acquire({ signal }) {
      signal.throwIfAborted();
      if (free === 0) {
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        const leave = (): void => {
          waiting.delete(enter);
          reject(signal.reason);
        };
        const enter = (): void => {
          waiting.delete(enter);
          free--;
          resolve();
        };
        waiting.add(enter);
        signal.addEventListener("abort", leave, { once: true });
        try {
          await promise;
        } finally {
          signal.removeEventListener("abort", leave);
        }
      } else free--;
      return { [Symbol.dispose]: release };
    },
  };
}
