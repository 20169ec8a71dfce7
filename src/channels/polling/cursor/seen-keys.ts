import { hash } from "node:crypto";
import { z } from "zod";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PageItem } from "../fetch/page.ts";

/**
 * Length of an item key: 22 base64url characters hold 132 bits of a hash. If two items had the same key, one would be lost. At this length,
 * that is practically impossible.
 */
export const KEY_CHARS = 22;

/** Returns a short key that identifies an item, from its id and version or from its content. */
export type ItemKey = (item: PageItem) => string;

/** If the settings name no id path, the key of an item is a hash of the whole item. */
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

/** Stored form of remembered keys: a list of pairs. Each pair contains a stamp and all keys with that stamp, concatenated. */
export const seenKeysSchema = z.array(
  z.tuple([
    z.string(),
    z.string().regex(/^(?:[A-Za-z0-9_-]{22})+$/, "must consist of keys of 22 characters each"),
  ]),
);
export type WrittenKeys = z.output<typeof seenKeysSchema>;

/**
 * Remembered item keys. Each key has a stamp (a time or an order key) that decides when it is forgotten. The keys are part of the cursor,
 * which is written with every page, so callers must limit their number.
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

  /** Adds a key. If the key is already known, it gets the new stamp and moves to the end. */
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

  /** Returns the stored form. The keys keep their order, except that keys with the same stamp are grouped. */
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
