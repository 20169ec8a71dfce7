/** How waits grow from one failure to the next. */
export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** 0 to 1: the part of each wait that is left to chance, so that those that failed together do not come back together. */
  readonly jitter: number;
}

/** The wait before another try, after so many failures in a row (from 1). */
export function backoffMs(
  { initialMs, maxMs, factor, jitter }: Backoff,
  failures: number,
  random: () => number,
): number {
  const wholeMs = Math.min(maxMs, initialMs * factor ** Math.max(0, failures - 1));
  return wholeMs * (1 - jitter * random());
}
