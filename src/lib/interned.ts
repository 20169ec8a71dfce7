import { LRUCache } from "lru-cache";
import { upToEntries } from "./up-to-entries.ts";

/**
 * Creates a function that shares equal values. The first call with a key creates the value with `make`. Later calls with this
 * key return the same value while it is in use. If `make` throws, the error is rethrown and not cached.
 */
export function createInterned<V extends object>(): (key: string, make: () => V) => V {
  const known = new Map<string, WeakRef<V>>();
  const gone = new FinalizationRegistry<string>((key) => {
    // Delete the entry only if a new value has not replaced the collected one.
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

/** Maximum number of cached parts. Many objects have equal parts, such as settings with default values. */
const MAX_PARTS = 1_000;
/**
 * Maximum length of a cached part, as JSON. Longer parts are nearly always unique, and the cache would retain them after their
 * last use.
 */
const MAX_PART_CHARS = 1_000;

/** An object whose parts may be shared with other objects. */
export interface SharedWhole<T> {
  readonly whole: T;
  /** Length of the parts that are not shared, as JSON. */
  readonly ownLength: number;
}

/** Creates a function that replaces the parts of an object (objects and arrays) with equal parts of earlier objects. */
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
