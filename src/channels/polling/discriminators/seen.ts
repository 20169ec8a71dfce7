import { z } from "zod";
import { err, ok } from "../../../lib/result.ts";
import type { Position, PositionContext } from "../cursor/position.ts";
import { type ItemKey, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import type { CompiledDiscriminator, DiscriminatorContext } from "./discriminator.ts";

export const savedSeenSchema = z.strictObject({
  keys: seenKeysSchema.default([]),
  /** True until the first poll is complete. The first poll remembers all existing items without publishing them. */
  isPriming: z.boolean().default(false),
});
export type SavedSeen = z.input<typeof savedSeenSchema>;

const shownSchema = z.strictObject({ seen: z.enum(["all", "none"]) });

/** Converts a position to its API form, which only counts the remembered items. `all` means that the first poll has not completed yet. */
export function showSeen(saved: unknown): { readonly seen: number | "all" } {
  const { isPriming, keys } = savedSeenSchema.parse(saved);
  return { seen: isPriming ? "all" : SeenKeys.read(keys, Number).size };
}

/** @param mustBe error message for any position other than `all` or `none` */
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

/** Returns the items that are not yet known, oldest first and without duplicates. The map is keyed by item key. */
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
