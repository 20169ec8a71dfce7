import { hash } from "node:crypto";
import { z } from "zod";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PageItem } from "../fetch/page.ts";

/**
 * Length of an item key in base64url characters, which is 132 bits of a hash. Two items with the same key, one of which would be lost, are
 * practically impossible.
 */
export const KEY_CHARS = 22;

/** Returns a short key that identifies an item, derived from its id and version or from its whole content. */
export type ItemKey = (item: PageItem) => string;

/** Creates the function that computes item keys. Without an id path, the key is a hash of the whole item. */
export function createItemKey(idPath: RulePath | undefined, versionPath: RulePath | undefined): ItemKey {
  return (item) => {
    const id = idPath && item.read(idPath);
    if (id === undefined) return item.contentHash().slice(0, KEY_CHARS);
    const version = versionPath && item.read(versionPath);
    return keyOf(version === undefined ? [id] : [id, version]);
  };
}

export const keyOf = (words: readonly string[]): string =>
  hash("sha256", JSON.stringify(words), "base64url").slice(0, KEY_CHARS);

/** Stored form of remembered item keys: a list of pairs. Each pair has a stamp and the concatenated keys with that stamp. */
export const seenKeysSchema = z.array(
  z.tuple([
    z.string(),
    z.string().regex(/^(?:[A-Za-z0-9_-]{22})+$/, "must consist of keys of 22 characters each"),
  ]),
);
export type WrittenKeys = z.output<typeof seenKeysSchema>;

/**
 * Item keys that were already published. Each key has a stamp, such as a time, that decides when the key is forgotten. Callers must limit
 * the number of keys, because every page writes all of them.
 */
export class SeenKeys<S extends number | bigint | string> {
  readonly #stamps = new Map<string, S>();

  static read<S extends number | bigint | string>(
    written: WrittenKeys,
    readStamp: (text: string) => S | undefined,
  ): SeenKeys<S> {
    const keys = new SeenKeys<S>();
    for (const [text, joined] of written) {
      const stamp = readStamp(text);
      if (stamp === undefined) continue;
      for (let at = 0; at < joined.length; at += KEY_CHARS) keys.add(joined.slice(at, at + KEY_CHARS), stamp);
    }
    return keys;
  }

  get size(): number {
    return this.#stamps.size;
  }

  keys(): Iterable<string> {
    return this.#stamps.keys();
  }

  has(key: string): boolean {
    return this.#stamps.has(key);
  }

  stampOf(key: string): S | undefined {
    return this.#stamps.get(key);
  }

  /** Adds a key. A key that is already known gets the new stamp and moves to the end. */
  add(key: string, stamp: S): void {
    this.#stamps.delete(key);
    this.#stamps.set(key, stamp);
  }

  forget(isOver: (stamp: S) => boolean): void {
    for (const [key, stamp] of this.#stamps) if (isOver(stamp)) this.#stamps.delete(key);
  }

  /** Forgets the oldest keys until at most `size` are left. Keys in `kept` are never forgotten. */
  forgetFirst(size: number, kept?: ReadonlySet<string>): void {
    for (const key of this.#stamps.keys()) {
      if (this.#stamps.size <= size) return;
      if (kept?.has(key) !== true) this.#stamps.delete(key);
    }
  }

  /** Returns the keys in their stored form. Keeps their order, but groups keys with the same stamp. */
  write(): WrittenKeys {
    const groups = new Map<string, string[]>();
    for (const [key, stamp] of this.#stamps) {
      const text = String(stamp);
      const group = groups.get(text);
      if (group === undefined) groups.set(text, [key]);
      else group.push(key);
    }
    return [...groups].map(([stamp, keys]) => [stamp, keys.join("")]);
  }
}
