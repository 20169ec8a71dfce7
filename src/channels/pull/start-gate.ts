/** A place among those that begin. */
export interface Admission {
  /** It has begun, or has failed to: the place is another's. May be called again. */
  readonly done: () => void;
}

/** Lets in so many at a time, first come first served. */
export interface StartGate {
  readonly admit: (options: { readonly signal: AbortSignal }) => Promise<Admission>;
}

/** @param options.mostMs how long one keeps its place: what takes longer to begin waits for others, and must not keep them waiting */
export function createStartGate(options: { readonly places: number; readonly mostMs: number }): StartGate {
  const { places, mostMs } = options;
  const queue: (() => void)[] = [];
  let taken = 0;

  function startNext(): void {
    while (taken < places) {
      const start = queue.shift();
      if (start === undefined) return;
      taken++;
      start();
    }
  }

  function admission(): Admission {
    let isOver = false;
    const done = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(late);
      taken--;
      startNext();
    };
    const late = setTimeout(done, mostMs).unref();
    return { done };
  }

  return {
    async admit({ signal }) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const giveUp = (): void => {
        const place = queue.indexOf(resolve);
        if (place < 0) return;
        queue.splice(place, 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      queue.push(resolve);
      startNext();
      await promise;
      signal.removeEventListener("abort", giveUp);
      return admission();
    },
  };
}
