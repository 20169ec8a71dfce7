import { z } from "zod";
import { err, ok } from "../../../lib/result.ts";
import { createPositionFullError, type Position, type PositionContext } from "../cursor/position.ts";
import { type ItemKey, SeenKeys, seenKeysSchema } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import type { CompiledDiscriminator, DiscriminatorContext } from "./discriminator.ts";

const savedSeenSchema = z.strictObject({
  keys: seenKeysSchema.default([]),
  /** True until the first poll is complete. The first poll remembers all existing items without publishing them. */
  isPriming: z.boolean().default(false),
});
type SavedSeen = z.input<typeof savedSeenSchema>;

const shownSchema = z.strictObject({ seen: z.enum(["all", "none"]) });

/** Converts a position to its API form, which only counts the remembered items. `all` means that the first poll has not completed yet. */
export function showSeen(saved: unknown): { readonly seen: number | "all" } {
  const { isPriming, keys } = savedSeenSchema.parse(saved);
  return { seen: isPriming ? "all" : SeenKeys.read(keys, Number).size };
}

/** Options of a position that consists of the items seen so far. */
interface SeenOptions extends Pick<DiscriminatorContext, "itemKey" | "order" | "startAt"> {
  readonly maxKeys: number;
  /** Whether items that are missing on the pages stay known. If false, only the items of the last page are known. */
  readonly keepsAll: boolean;
  /** Time after which an item that no page has contained is forgotten. */
  readonly maxAgeSeconds?: number;
}

/** @param mustBe error message for any position other than `all` or `none` */
export const compileSeen = (options: SeenOptions, mustBe: string): CompiledDiscriminator => ({
  start: (context) => createPosition(options, { isPriming: options.startAt === "now" }, context),
  restore(saved, context) {
    const read = savedSeenSchema.safeParse(saved);
    return read.success ? createPosition(options, read.data, context) : undefined;
  },
  parse(value) {
    const read = shownSchema.safeParse(value);
    return read.success
      ? ok({ isPriming: read.data.seen === "all" })
      : err([{ path: "seen", message: mustBe }]);
  },
});

/** Divides the maximum age of a stamp into steps. A stamp is renewed only once per step, because each renewal costs a write. */
const STEPS = 32;

function createPosition(
  { itemKey, keepsAll, maxAgeSeconds, maxKeys, order }: SeenOptions,
  saved: SavedSeen,
  { nowMs }: PositionContext,
): Position {
  const nowSeconds = Math.floor(nowMs / 1000);
  const step = Math.ceil((maxAgeSeconds ?? 0) / STEPS);
  /** Stamp for all items of this poll: the current time, rounded up to a step. 0 if items are not forgotten by age. */
  const stamp = step === 0 ? 0 : Math.ceil(nowSeconds / step) * step;
  const keys = SeenKeys.read(saved.keys ?? [], Number);
  if (maxAgeSeconds !== undefined) keys.forget((seenSeconds) => seenSeconds < nowSeconds - maxAgeSeconds);
  const knownBefore: ReadonlySet<string> = new Set(keys.keys());
  /** Keys of the items in this poll. They must stay remembered, even if the poll exceeds the limit. */
  const touched = new Set<string>();
  let isPriming = saved.isPriming ?? false;

  function touch(key: string): void {
    touched.add(key);
    keys.add(key, stamp);
    keys.forgetFirst(maxKeys, touched);
  }

  function isKnown(key: string): boolean {
    if (!keys.has(key)) return false;
    touch(key);
    return true;
  }

  const remainingCapacity = (): number => maxKeys - touched.size;
  return {
    cursor: () => undefined,
    isPriming: () => isPriming,
    remainingCapacity,
    select({ items }) {
      const unknown = unknownItems(items, order, { itemKey, isKnown });
      if (!isPriming) return [...unknown.values()];
      if (unknown.size > remainingCapacity()) throw createPositionFullError();
      for (const key of unknown.keys()) touch(key);
      return [];
    },
    add(items) {
      for (const item of items) touch(itemKey(item));
    },
    reachesKnown({ items }) {
      const last = items.at(-1);
      return last !== undefined && !isPriming && knownBefore.has(itemKey(last));
    },
    unchanged() {
      for (const key of knownBefore) touch(key);
    },
    endPage: () => false,
    endWalk() {
      if (!keepsAll) keys.forgetFirst(0, touched);
      isPriming = false;
    },
    save() {
      const written = keys.write();
      return { ...(written.length > 0 && { keys: written }), ...(isPriming && { isPriming }) };
    },
  };
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
