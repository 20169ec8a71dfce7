/** Parameters of exponential backoff. */
export interface Backoff {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly factor: number;
  /** Random share of each wait, from 0 to 1, so that clients that failed together do not retry together. */
  readonly jitter: number;
}

/** Computes the wait before the next attempt. @param failures number of consecutive failures, at least 1 */
export function backoffMs(
  { initialMs, maxMs, factor, jitter }: Backoff,
  failures: number,
  random: () => number,
): number {
  const wholeMs = Math.min(maxMs, initialMs * factor ** Math.max(0, failures - 1));
  return wholeMs * (1 - jitter * random());
}
