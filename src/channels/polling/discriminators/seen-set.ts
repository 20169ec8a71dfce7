import { z } from "zod";
import { integer, pathText } from "../../../event/setting-fields.ts";
import {
  createPositionFullError,
  MAX_KEYS,
  type Position,
  type PositionContext,
} from "../cursor/position.ts";
import { createItemKey, SeenKeys } from "../cursor/seen-keys.ts";
import { type Discriminator, type DiscriminatorContext, rejectStartValue } from "./discriminator.ts";
import { compileSeen, type SavedSeen, showSeen, unknownItems, writeSeen } from "./seen.ts";

const settings = z.strictObject({
  by: z
    .literal("seenSet")
    .describe(
      "New is what was not seen before. All pages are read on each poll; newest first, those up to the first that ends with a known item, so that nothing is found below it: where a feed puts new items there, say unordered.",
    ),
  key: pathText
    .optional()
    .describe(
      "A path over an item that yields what it is known again by, together with `versionPath`; without it `itemId` is.",
    ),
  maxAgeSeconds: integer(3600, 34_560_000, 2_592_000).describe(
    "An item is forgotten when no page has shown it for so long; when it comes again it is new.",
  ),
  maxKeys: integer(1, MAX_KEYS, 10_000).describe(
    "So many items are remembered; those that were not shown for the longest time give way.",
  ),
});

/** A stamp is refreshed after this fraction of the maximum age, because each refresh costs a write. */
const STEPS = 32;

/** Remembers the keys of all items seen. */
export const seenSet: Discriminator<typeof settings> = {
  settings,
  cursorKind: () => undefined,
  create(settings, context) {
    const key = context.paths.ofItem(settings.key, "discriminator.key") ?? context.itemId;
    const options = { ...settings, order: context.order, itemKey: createItemKey(key, context.versionPath) };
    return compileSeen(context, MUST_BE, (saved, at) => createPosition(options, saved, at));
  },
  show: showSeen,
  check: (_, context, refuse) => rejectStartValue(context, refuse),
};

const MUST_BE =
  'must be "none", by which all that the server shows is new, or "all", by which what the next poll finds is known';

type SeenSetOptions = z.output<typeof settings> & Pick<DiscriminatorContext, "itemKey" | "order">;

function createPosition(
  { itemKey, maxAgeSeconds, maxKeys, order }: SeenSetOptions,
  saved: SavedSeen,
  { nowMs }: PositionContext,
): Position {
  const step = Math.ceil(maxAgeSeconds / STEPS);
  const nowSeconds = Math.floor(nowMs / 1000);
  /** The stamp of items seen in this poll. */
  const stamp = Math.ceil(nowSeconds / step) * step;
  const keys = SeenKeys.read(saved.keys ?? [], Number);
  keys.forget((seenSeconds) => seenSeconds < nowSeconds - maxAgeSeconds);
  const knownBefore: ReadonlySet<string> = new Set(keys.keys());
  /** Keys seen by this poll. They are not evicted by other items of the same poll. */
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
      isPriming = false;
    },
    save: () => writeSeen(keys, isPriming),
  };
}
