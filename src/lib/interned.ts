import { LRUCache } from "lru-cache";
import { upToEntries } from "./up-to-entries.ts";

/**
 * Creates a function that returns one shared object per key, as long as that object is in use. The function calls `make` for a new
 * key, and rethrows its errors without caching them.
 */
export function createInterned<V extends object>(): (key: string, make: () => V) => V {
  const known = new Map<string, WeakRef<V>>();
  const gone = new FinalizationRegistry<string>((key) => {
    // Delete the entry only if no new value was stored after the old one was garbage-collected.
    if (known.get(key)?.deref() === undefined) known.delete(key);
  });
  return (key, make) => {
    const held = known.get(key)?.deref();
    if (held !== undefined) return held;
    const made = make();
    known.set(key, new WeakRef(made));
    gone.register(made, key);
    return made;
  };
}

/** Maximum number of cached objects and arrays. The least recently used entry is evicted first. */
const MAX_PARTS = 1_000;
/** Maximum JSON length of a cached object or array. Longer values are nearly always unique, so caching them would waste memory. */
const MAX_PART_CHARS = 1_000;

export interface SharedWhole<T> {
  readonly whole: T;
  /** JSON length of the parts of the object that are not shared. */
  readonly ownLength: number;
}

/** Creates a function that replaces nested objects and arrays by equal ones from earlier calls, to save memory. */
export function createSharedParts(): <T extends object>(whole: T) => SharedWhole<T> {
  const known = new LRUCache<string, object>(upToEntries(MAX_PARTS));

  return <T extends object>(whole: T) => {
    let ownLength = 0;
    const share = (part: unknown): unknown => {
      if (typeof part === "string") ownLength += part.length;
      if (typeof part !== "object" || part === null) return part;
      const text = JSON.stringify(part);
      const before = known.get(text);
      if (before !== undefined) return before;
      ownLength += text.length;
      if (text.length <= MAX_PART_CHARS) known.set(text, part);
      return part;
    };
    const parts = Object.entries(whole).map(([name, part]) => [name, share(part)]);
    return { whole: Object.fromEntries(parts) as T, ownLength };
  };
}
