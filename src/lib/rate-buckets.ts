/** Token buckets by key, local to this process. Memory use is bounded, and a check is cheap enough for every request. */
export interface RateBuckets<K> {
  /**
   * Takes one token from the bucket of a key, which holds at most the tokens of one second at `ratePerSecond`. Returns 0 on success,
   * otherwise the time in ms until a token is available. `nowMs` must be monotonic.
   */
  readonly take: (key: K, ratePerSecond: number, nowMs: number) => number;
  /**
   * Takes tokens even if the bucket has too few. `take` then returns a wait until the missing tokens are refilled.
   *
   * @param mostDebtMs maximum time in ms for refilling the missing tokens; unlimited by default
   */
  readonly overdraw: (
    key: K,
    tokens: number,
    ratePerSecond: number,
    nowMs: number,
    mostDebtMs?: number,
  ) => void;
  /** Returns what `take` would return, but takes no token. */
  readonly look: (key: K, ratePerSecond: number, nowMs: number) => number;
}

const BURST_MS = 1_000;
/** Tolerance in ms for rounding errors in sums of fractional milliseconds. */
const ROUNDING_MS = 1e-6;
const MAX_KEYS = 32_768;

/**
 * Creates token buckets with the generic cell rate algorithm (ITU-T I.371). For each bucket, it stores only the time at which the
 * bucket will be full again.
 *
 * Two generations of entries limit the memory. When the young generation has `maxKeys` entries, it replaces the old one. Entries
 * that were not used since the previous replacement are dropped, as if their buckets were full.
 */
export function createRateBuckets<K>(maxKeys: number = MAX_KEYS): RateBuckets<K> {
  let young = new Map<K, number>();
  let old = new Map<K, number>();

  function fullAtMs(key: K): number {
    const known = young.get(key);
    if (known !== undefined) return known;
    const kept = old.get(key) ?? 0;
    if (young.size >= maxKeys) {
      old = young;
      young = new Map();
    }
    return kept;
  }

  return {
    take(key, ratePerSecond, nowMs) {
      const before = Math.max(fullAtMs(key), nowMs);
      const after = before + 1_000 / ratePerSecond;
      const waitMs = after - nowMs - BURST_MS;
      const allowed = waitMs <= ROUNDING_MS;
      young.set(key, allowed ? after : before);
      return allowed ? 0 : waitMs;
    },
    overdraw(key, tokens, ratePerSecond, nowMs, mostDebtMs = Number.POSITIVE_INFINITY) {
      const before = Math.max(fullAtMs(key), nowMs);
      const after = before + (tokens * 1_000) / ratePerSecond;
      young.set(key, Math.max(before, Math.min(after, nowMs + BURST_MS + mostDebtMs)));
    },
    look(key, ratePerSecond, nowMs) {
      const before = Math.max(young.get(key) ?? old.get(key) ?? 0, nowMs);
      const waitMs = before + 1_000 / ratePerSecond - nowMs - BURST_MS;
      return waitMs <= ROUNDING_MS ? 0 : waitMs;
    },
  };
}
