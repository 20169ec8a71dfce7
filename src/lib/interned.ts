import { LRUCache } from "lru-cache";
import { upToEntries } from "./up-to-entries.ts";

/**
 * Values that are equal for all who ask under the same key: made by the first, shared by the others, and forgotten once nobody holds
 * them. What `make` throws is thrown on, and nothing is kept.
 */
export function createInterned<V extends object>(): (key: string, make: () => V) => V {
  const known = new Map<string, WeakRef<V>>();
  const gone = new FinalizationRegistry<string>((key) => {
    // Another may have been made since.
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

/** Many objects have some of these in common: settings that nobody has changed. */
const MAX_PARTS = 1_000;
/** A longer part is nearly always one of a kind, and would be kept here after all who had it. */
const MAX_PART_CHARS = 1_000;

/** An object of which some parts are those of others. */
export interface SharedWhole<T> {
  readonly whole: T;
  /** The length as text of the parts that are its own. */
  readonly ownLength: number;
}

/** Answers an object whose parts, where they are objects or lists, are those of an earlier one where they are equal. */
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
