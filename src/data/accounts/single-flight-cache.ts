import { LRUCache } from "lru-cache";
import { upToEntries } from "../../lib/up-to-entries.ts";

/**
 * Caches lookups for a short time, including lookups that found nothing. Concurrent calls with the same key share one lookup.
 *
 * If a lookup fails, no expired value is used.
 */
export function createSingleFlightCache<V extends object>(options: {
  readonly load: (key: string) => Promise<V | undefined>;
  /** Maximum age of a value in ms. The age is counted from the start of the lookup, because the value may have been read then. */
  readonly maxAgeMs: number;
  readonly maxEntries: number;
}) {
  const { load, maxAgeMs, maxEntries } = options;
  const known = new LRUCache<string, { readonly value: Promise<V | undefined>; readonly sinceMs: number }>(
    upToEntries(maxEntries),
  );
  return {
    /**
     * Returns a cached or new value that is at most `maxAgeMs` old. Returns `undefined` if the lookup finds nothing, and rejects if
     * it fails.
     */
    get(key: string): Promise<V | undefined> {
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
