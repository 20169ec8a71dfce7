/**
 * Buckets of response times. The upper bounds are 0.25 ms times powers of 2^(1/4), up to 76 s, so a bucket ends 19 % above its start. A
 * percentile is the geometric middle of its bucket, so it differs by at most 9.1 % from the true value between the first and the last
 * bound.
 *
 * Stored counts use these bounds, so they must never change.
 */
const FIRST_BOUND_MS = 0.25;
const BUCKETS_PER_DOUBLING = 4;
/** Number of buckets. The last one counts all longer times. */
export const LATENCY_BUCKETS = 75;

/** Returns the index of the bucket that counts a time in ms. */
export function toLatencyBucket(ms: number): number {
  if (!(ms > FIRST_BOUND_MS)) return 0;
  const bucket = Math.ceil(Math.log2(ms / FIRST_BOUND_MS) * BUCKETS_PER_DOUBLING);
  return bucket < LATENCY_BUCKETS ? bucket : LATENCY_BUCKETS - 1;
}

/**
 * Returns a percentile in ms. Returns `null` without any counts.
 *
 * @param counts counts of the buckets; trailing buckets without counts may be missing
 * @param fraction the percentile as a fraction, such as 0.99
 */
export function estimatePercentileMs(counts: readonly number[], fraction: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = Math.ceil(total * fraction);
  const bucket = counts.findIndex((count) => {
    left -= count;
    return left <= 0;
  });
  const middle = FIRST_BOUND_MS * 2 ** ((bucket - 0.5) / BUCKETS_PER_DOUBLING);
  return Number(middle.toPrecision(3));
}
