/** Reserves a stream for a caller. Returns a function that releases it, or the limit that was reached. Releasing twice has no effect. */
export type TakeStreamPlace = (caller: string) => (() => void) | "perCaller" | "perWorker";

/** Limits the open streams of a worker and of each caller. */
export function createStreamPlaces(limits: {
  readonly perCaller: number;
  readonly perWorker: number;
}): TakeStreamPlace {
  const taken = new Map<string, number>();
  let all = 0;
  return (caller) => {
    const ours = taken.get(caller) ?? 0;
    if (ours >= limits.perCaller) return "perCaller";
    if (all >= limits.perWorker) return "perWorker";
    taken.set(caller, ours + 1);
    all++;
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      all--;
      const left = (taken.get(caller) ?? 1) - 1;
      if (left === 0) taken.delete(caller);
      else taken.set(caller, left);
    };
  };
}
