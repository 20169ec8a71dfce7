export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Random share of each wait, from 0 to 1. The random share prevents clients that failed together from retrying together. */
  readonly jitter: number;
}

/**
 * Returns how long to wait before the next attempt, in ms.
 *
 * @param failures number of consecutive failures, at least 1
 */
export function backoffMs(
  { initialMs, maxMs, factor, jitter }: Backoff,
  failures: number,
  random: () => number,
): number {
  const wholeMs = Math.min(maxMs, initialMs * factor ** Math.max(0, failures - 1));
  return wholeMs * (1 - jitter * random());
}
