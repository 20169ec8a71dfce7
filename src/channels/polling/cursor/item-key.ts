import { hash } from "node:crypto";
import type { RulePath } from "../../../normalize/compile.ts";
import type { PageItem } from "../fetch/page.ts";
import { KEY_CHARS } from "./seen-keys.ts";

/** A short name of an item, by which it is known again: the same for the same id and version, or for the same content. */
export type ItemKey = (item: PageItem) => string;

/** `idPath` undefined, or one that yields nothing: the whole content tells items apart. */
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
