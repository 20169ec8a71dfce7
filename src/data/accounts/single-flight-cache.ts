import { LRUCache } from "lru-cache";
import { upToEntries } from "../../lib/up-to-entries.ts";

/** Look-ups of a moment ago. */
export interface SingleFlightCache<V> {
  /** The value by that key, at most `maxAgeMs` old; undefined where there is none. Throws what the look-up throws. */
  readonly get: (key: string) => Promise<V | undefined>;
  /** Every later call looks up anew. */
  readonly clear: () => void;
}

/**
 * Remembers look-ups, those that find nothing too, for a short while and no longer: a value that is too old is looked up before it
 * is used, and a failed look-up is not covered up by an older value. Calls for one key at the same time share one look-up.
 */
export function createSingleFlightCache<V extends object>(options: {
  readonly load: (key: string) => Promise<V | undefined>;
  /** Counted from the beginning of the look-up: its result may be as old as that. */
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
