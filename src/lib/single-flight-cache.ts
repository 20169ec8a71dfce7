import { LRUCache } from "lru-cache";

/** What was looked up a moment ago. */
export interface Recent<V> {
  /** The value by that key, at most `maxAgeMs` old; undefined where there is none. Throws what the look-up throws. */
  readonly get: (key: string) => Promise<V | undefined>;
  /** What is asked for from now on is looked up anew. */
  readonly clear: () => void;
}

/**
 * Remembers look-ups, those that find nothing too, for a short while and no longer: whatever is too old is looked up before it
 * is used, and a look-up that fails is not covered up by what was known. Whoever asks for the same at the same time shares one.
 */
export function createRecent<V extends object>(options: {
  readonly load: (key: string) => Promise<V | undefined>;
  /** Counted from when the look-up begins: what it reads may be as old as that. */
  readonly maxAgeMs: number;
  readonly maxEntries: number;
}): Recent<V> {
  const { load, maxAgeMs, maxEntries } = options;
  const known = new LRUCache<string, { readonly value: Promise<V | undefined>; readonly sinceMs: number }>({
    max: maxEntries,
  });
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
