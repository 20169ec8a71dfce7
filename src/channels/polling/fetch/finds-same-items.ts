import { readBody } from "../../../normalize/body/bodies.ts";
import { MAX_PAGE_ITEMS, splitItems } from "../../../normalize/body/items.ts";
import type { RulePath } from "../../../normalize/compile.ts";

/**
 * Returns whether `itemsPath` still finds the given items after all other items were removed. False if the path depends on the position of
 * an item or on other items.
 */
export function findsSameItems(text: string, items: readonly string[], itemsPath: RulePath): boolean {
  const read = readBody(Buffer.from(text), undefined);
  if (!read.ok) return false;
  const split = splitItems(read.value, itemsPath, { left: Number.POSITIVE_INFINITY }, MAX_PAGE_ITEMS);
  if (split.kind !== "items") return false;
  // Compares only the texts of the items. The indexes may differ, because a filter in the path may skip `null` items.
  const found = split.items.flatMap((item) =>
    "value" in item && item.value !== null ? [item.json?.text] : [],
  );
  return found.length === items.length && found.every((each, index) => each === items[index]);
}
