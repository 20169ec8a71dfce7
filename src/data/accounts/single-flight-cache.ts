import { LRUCache } from "lru-cache";
import { upToEntries } from "../../lib/up-to-entries.ts";

/** A short-lived cache of lookups. */
export interface SingleFlightCache<V> {
  /**
   * Returns the value of the key, which is at most `maxAgeMs` old. Returns `undefined` if the lookup found none, and rejects if it failed.
   */
  readonly get: (key: string) => Promise<V | undefined>;
  /** Drops all entries, so that each later call starts a new lookup. */
  readonly clear: () => void;
}

/**
 * Caches lookups for a short time, including those without a result. Never returns a value older than `maxAgeMs`, even if the new
 * lookup fails. Concurrent calls for the same key share one lookup.
 */
export function createSingleFlightCache<V extends object>(options: {
  readonly load: (key: string) => Promise<V | undefined>;
  /** Maximum age of a value in ms. Measured from the start of the lookup, because the lookup may have read the value right then. */
  readonly maxAgeMs: number;
  readonly maxEntries: number;
}): SingleFlightCache<V> {
  const { load, maxAgeMs, maxEntries } = options;
  const known = new LRUCache<string, { readonly value: Promise<V | undefined>; readonly sinceMs: number }>(
    upToEntries(maxEntries),
  );
  return {
    get(key) {
      const nowMs = performance.now();
      const found = known.get(key);
      if (found !== undefined && nowMs - found.sinceMs <= maxAgeMs) return found.value;
      const entry = { value: load(key), sinceMs: nowMs };
      known.set(key, entry);
      entry.value.catch(() => {
        if (known.peek(key) === entry) known.delete(key);
      });
      return entry.value;
    },
    clear: () => known.clear(),
  };
}
