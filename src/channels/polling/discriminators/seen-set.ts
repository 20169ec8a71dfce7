import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import {
  createPositionFullError,
  MAX_KEYS,
  type Position,
  type PositionContext,
} from "../cursor/position.ts";
import { createItemKey, SeenKeys } from "../cursor/seen-keys.ts";
import { type Discriminator, type DiscriminatorContext, rejectStartValue } from "./discriminator.ts";
import { compileSeen, type SavedSeen, showSeen, unknownItems, writeSeen } from "./seen.ts";

const configSchema = z.strictObject({
  by: z
    .literal("seenSet")
    .describe(
      "Items that no earlier poll has seen are new. Each poll reads all pages. With `descending` order, it stops at the first page that ends with a known item, so use `unordered` if new items can appear after known ones.",
    ),
  key: pathText
    .optional()
    .describe(
      "Path to the value that, together with `versionPath`, identifies an item. Defaults to `itemId`.",
    ),
  maxAgeSeconds: integer(3600, 34_560_000, 2_592_000).describe(
    "An item is forgotten after this time without appearing on a page, in seconds. If it appears again, it is new.",
  ),
  maxKeys: integer(1, MAX_KEYS, 10_000).describe(
    "Maximum number of remembered items. The items not seen for the longest time are forgotten first.",
  ),
});

/** Divides the maximum age of a stamp into steps. A stamp is renewed only once per step, because each renewal costs a write. */
const STEPS = 32;

export const seenSet: Discriminator<typeof configSchema> = {
  configSchema,
  cursorKind: () => undefined,
  create(config, context) {
    const key = context.paths.ofItem(config.key, "discriminator.key") ?? context.itemId;
    const options = { ...config, order: context.order, itemKey: createItemKey(key, context.versionPath) };
    return compileSeen(context, MUST_BE, (saved, at) => createPosition(options, saved, at));
  },
  show: showSeen,
  check: (_, context, refuse) => rejectStartValue(context, refuse),
};

const MUST_BE =
  'must be "none" (all items count as new) or "all" (the items of the next poll count as known)';

type SeenSetOptions = z.output<typeof configSchema> & Pick<DiscriminatorContext, "itemKey" | "order">;

function createPosition(
  { itemKey, maxAgeSeconds, maxKeys, order }: SeenSetOptions,
  saved: SavedSeen,
  { nowMs }: PositionContext,
): Position {
  const step = Math.ceil(maxAgeSeconds / STEPS);
  const nowSeconds = Math.floor(nowMs / 1000);
  /** Stamp for all items of this poll: the current time, rounded up to a step. */
  const stamp = Math.ceil(nowSeconds / step) * step;
  const keys = SeenKeys.read(saved.keys ?? [], Number);
  keys.forget((seenSeconds) => seenSeconds < nowSeconds - maxAgeSeconds);
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
      isPriming = false;
    },
    save: () => writeSeen(keys, isPriming),
  };
}
