import { z } from "zod";
import { pathText } from "../../event/config-fields.ts";
import { BODY_ROOT, HEADERS_ROOT, type KindProfile } from "../../normalize/profile.ts";

export const polledItemFields = {
  itemId: pathText
    .optional()
    .describe(
      "Path to an item's unique and stable id, evaluated on the item. It identifies items across polls, and is the event id unless the definition has an `idPath`. Without it, an item is identified by its whole content.",
    ),
  versionPath: pathText
    .optional()
    .describe(
      "Path to an item's version, such as $.updatedAt, evaluated on the item. A known id with a new version is a new event with the id `<id>/<version>`.",
    ),
  order: z
    .enum(["ascending", "descending", "unordered"])
    .describe(
      "Order of items within a page and across pages: oldest first, newest first, or none. Even if pages are `descending`, events are published oldest first.",
    )
    .default("ascending"),
} as const;

const polledItemSchema = z.object(polledItemFields);

/**
 * How rules read a polled page. Known items are replaced with `null`, so that new items keep their indexes and known items are not stored
 * again.
 */
export const pollingProfile: KindProfile = {
  roots: new Map([
    ["headers", HEADERS_ROOT],
    ["body", BODY_ROOT],
  ]),
  itemOptions(config) {
    const { itemId, order, versionPath } = polledItemSchema.parse(config);
    return { itemId, versionPath, hasGaps: true, isNewestFirst: order === "descending" };
  },
};
