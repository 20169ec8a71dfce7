import { LRUCache } from "lru-cache";
import { upToEntries } from "./up-to-entries.ts";

/**
 * Creates a function that shares equal values. The first call with a key creates the value with `make`. Later calls return the
 * same value as long as it is in use. An error of `make` is rethrown and not cached.
 */
export function createInterned<V extends object>(): (key: string, make: () => V) => V {
  const known = new Map<string, WeakRef<V>>();
  const gone = new FinalizationRegistry<string>((key) => {
    // A new value may have replaced the collected one. Keep its entry.
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

/** Maximum number of cached parts. The least recently used part is evicted first. */
const MAX_PARTS = 1_000;
/** Maximum length of a cached part, as JSON. Longer parts are nearly always unique, so caching them would only waste memory. */
const MAX_PART_CHARS = 1_000;

export interface SharedWhole<T> {
  readonly whole: T;
  /** Length of the parts that it does not share, as JSON. */
  readonly ownLength: number;
}

/** Creates a function that replaces the objects and arrays inside an object with equal ones of earlier objects. */
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
