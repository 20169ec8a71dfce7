import { LRUCache } from "lru-cache";
import { upToEntries } from "../../lib/up-to-entries.ts";

export interface SingleFlightCache<V> {
  /** Returns a value that is at most `maxAgeMs` old, or `undefined` if the lookup found none. Rejects if the lookup failed. */
  readonly get: (key: string) => Promise<V | undefined>;
  readonly clear: () => void;
}

/**
 * Caches lookups for a short time, including those that found nothing. A failed lookup never falls back to an expired value.
 * Concurrent calls with the same key share one lookup.
 */
export function createSingleFlightCache<V extends object>(options: {
  readonly load: (key: string) => Promise<V | undefined>;
  /** Maximum age of a value in ms, counted from the start of its lookup. The lookup may have read the value as early as that. */
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
