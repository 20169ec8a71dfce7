import { readBody } from "../../../normalize/body/bodies.ts";
import { MAX_PAGE_ITEMS, splitItems } from "../../../normalize/body/items.ts";
import type { RulePath } from "../../../normalize/compile.ts";

/** True where `itemsPath`, run over a page of which only some items are left, finds these: it goes by places or by other items else. */
export function findsSameItems(text: string, items: readonly string[], itemsPath: RulePath): boolean {
  const read = readBody(Buffer.from(text), undefined);
  if (!read.ok) return false;
  const split = splitItems(read.value, itemsPath, { left: Number.POSITIVE_INFINITY }, MAX_PAGE_ITEMS);
  if (split.kind !== "items") return false;
  // A filter may pass over the gaps, so that an item has another place.
  const found = split.items.flatMap((item) =>
    "value" in item && item.value !== null ? [item.json?.text] : [],
  );
  return found.length === items.length && found.every((each, index) => each === items[index]);
}
