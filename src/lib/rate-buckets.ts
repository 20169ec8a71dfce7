/** Token buckets by key: in process, bounded, and cheap enough for every delivery. */
export interface RateBuckets<K> {
  /**
   * Takes one token of that key's bucket, which holds a second's worth and fills at `ratePerSecond`. Answers 0, or how many
   * milliseconds are left until there is one. `nowMs` is monotonic.
   */
  readonly take: (key: K, ratePerSecond: number, nowMs: number) => number;
  /**
   * Takes so many more of a bucket, also where there are fewer: `take` answers the time until they are paid back.
   *
   * @param mostDebtMs after so long all is paid back; default: however long it takes
   */
  readonly overdraw: (
    key: K,
    tokens: number,
    ratePerSecond: number,
    nowMs: number,
    mostDebtMs?: number,
  ) => void;
  /** What `take` would answer, with nothing taken. */
  readonly look: (key: K, ratePerSecond: number, nowMs: number) => number;
}

const BURST_MS = 1_000;
/** Sums of fractions of a millisecond end a little beside the whole. */
const ROUNDING_MS = 1e-6;
const MAX_KEYS = 32_768;

/**
 * Buckets by the generic cell rate algorithm (ITU-T I.371): of each only the moment is kept at which it would be full
 * again. Two generations bound the memory: when the young one holds `maxKeys`, it becomes the old one, and what stood in that
 * and was not asked for since is forgotten, as if it were full.
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
