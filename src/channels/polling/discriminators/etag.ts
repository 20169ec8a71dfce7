import { z } from "zod";
import { createPositionFullError, MAX_KEYS, type Position } from "../cursor/position.ts";
import { SeenKeys } from "../cursor/seen-keys.ts";
import type { PageItem } from "../fetch/page.ts";
import { type Discriminator, type DiscriminatorContext, rejectStartValue } from "./discriminator.ts";
import { compileSeen, type SavedSeen, showSeen, unknownItems, writeSeen } from "./seen.ts";

const configSchema = z.strictObject({
  by: z
    .literal("etag")
    .describe(
      "Polls a single document with If-None-Match and If-Modified-Since. Items are new if the previous version of the document did not contain them. Without `itemsPath`, each version of the document is one item.",
    ),
});

/** Finds new items by comparing a document with its previous version. The ETag only tells whether the document has changed. */
export const etag: Discriminator<typeof configSchema> = {
  configSchema,
  cursorKind: () => undefined,
  create: (_, context) => ({
    ...compileSeen(context, MUST_BE, (saved) => createPosition(context, saved)),
    isConditional: true,
  }),
  show: showSeen,
  check(_, context, refuse) {
    rejectStartValue(context, refuse);
    if (context.isPaged) refuse("pagination", ONE_DOCUMENT);
  },
};

const ONE_DOCUMENT =
  "is not allowed with etag, which polls a single document; use seenSet with `conditional` instead";

const MUST_BE =
  'must be "none" (all items in the document count as new) or "all" (all current items count as known)';

function createPosition({ itemKey, order }: DiscriminatorContext, saved: SavedSeen): Position {
  const keys = SeenKeys.read(saved.keys ?? [], Number);
  let isPriming = saved.isPriming ?? false;
  const add = (items: readonly PageItem[]): void => {
    for (const item of items) keys.add(itemKey(item), VERSION);
  };
  return {
    cursor: () => undefined,
    isPriming: () => isPriming,
    // The keys of the old and the new version are both stored until all new items are published, so the limit is doubled.
    remainingCapacity: () => 2 * MAX_KEYS - keys.size,
    select({ items }) {
      if (items.length > MAX_KEYS) throw createPositionFullError();
      if (isPriming) return [];
      return [...unknownItems(items, order, { itemKey, isKnown: (key) => keys.has(key) }).values()];
    },
    add,
    reachesKnown: () => true,
    endPage({ items }) {
      keys.forget(() => true);
      add(items);
      isPriming = false;
      return false;
    },
    endWalk() {},
    save: () => writeSeen(keys, isPriming),
  };
}

/** Stamp of every key. All keys are equal here, because the keys of one version are forgotten together. */
const VERSION = 0;
