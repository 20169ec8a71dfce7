import { z } from "zod";
import { err, ok } from "../../../lib/result.ts";
import type { Position, PositionContext } from "../cursor/position.ts";
import { type ItemKey, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import type { CompiledDiscriminator, DiscriminatorContext } from "./discriminator.ts";

export const savedSeenSchema = z.strictObject({
  keys: seenKeysSchema.default([]),
  /** True until the first poll is complete. That poll remembers all existing items without publishing them. */
  isPriming: z.boolean().default(false),
});
export type SavedSeen = z.input<typeof savedSeenSchema>;

const shownSchema = z.strictObject({ seen: z.enum(["all", "none"]) });

/**
 * Returns the API form of a position: the number of remembered keys, or `all` until the first poll has remembered the existing items. The
 * items themselves are not shown, because only their hashes are stored.
 */
export function showSeen(saved: unknown): { readonly seen: number | "all" } {
  const { isPriming, keys } = savedSeenSchema.parse(saved);
  return { seen: isPriming ? "all" : SeenKeys.read(keys, Number).size };
}

/** @param mustBe error message for a position other than `all` or `none` */
export const compileSeen = (
  { startAt }: Pick<DiscriminatorContext, "startAt">,
  mustBe: string,
  create: (saved: SavedSeen, context: PositionContext) => Position,
): CompiledDiscriminator => ({
  start: (context) => create({ isPriming: startAt === "now" }, context),
  restore(saved, context) {
    const read = savedSeenSchema.safeParse(saved);
    return read.success ? create(read.data, context) : undefined;
  },
  parse(value) {
    const read = shownSchema.safeParse(value);
    return read.success
      ? ok({ isPriming: read.data.seen === "all" })
      : err([{ path: "seen", message: mustBe }]);
  },
});

export function writeSeen(keys: SeenKeys<number>, isPriming: boolean): SavedSeen {
  const written = keys.write();
  return { ...(written.length > 0 && { keys: written }), ...(isPriming && { isPriming }) };
}

/** Returns the unknown items by key, oldest first. An item that occurs several times is returned once. */
export function unknownItems(
  items: readonly PageItem[],
  order: "ascending" | "descending" | "unordered",
  { itemKey, isKnown }: { readonly itemKey: ItemKey; readonly isKnown: (key: string) => boolean },
): ReadonlyMap<string, PageItem> {
  const unknown = new Map<string, PageItem>();
  for (const item of order === "descending" ? items.toReversed() : items) {
    const key = itemKey(item);
    if (!isKnown(key) && !unknown.has(key)) unknown.set(key, item);
  }
  return unknown;
}
