import { z } from "zod";
import { integer, pathText } from "../../../event/config-fields.ts";
import { MAX_KEYS } from "../cursor/position.ts";
import { createItemKey } from "../cursor/seen-keys.ts";
import { type Discriminator, rejectStartValue } from "./discriminator.ts";
import { compileSeen, showSeen } from "./seen.ts";

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

export const seenSet: Discriminator<typeof configSchema> = {
  configSchema,
  cursorKind: () => undefined,
  create(config, context) {
    const key = context.paths.ofItem(config.key, "discriminator.key") ?? context.itemId;
    return compileSeen(
      { ...context, ...config, itemKey: createItemKey(key, context.versionPath), keepsAll: true },
      MUST_BE,
    );
  },
  show: showSeen,
  check: (_, context, refuse) => rejectStartValue(context, refuse),
};

const MUST_BE =
  'must be "none" (all items count as new) or "all" (the items of the next poll count as known)';
