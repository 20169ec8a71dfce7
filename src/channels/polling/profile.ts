import { z } from "zod";
import { pathText } from "../../event/setting-fields.ts";
import { BODY_ROOT, HEADERS_ROOT, type KindProfile } from "../../normalize/profile.ts";

/** Settings that identify and order the items of a polling channel. The descriptions are shown to users. */
export const polledItemSettings = {
  itemId: pathText
    .optional()
    .describe(
      "A path over an item that yields what is always the same of it and of no other: by it an item is known again, and its events have it as their id where their definition has no `idPath`. Without it an item is known by its whole content.",
    ),
  versionPath: pathText
    .optional()
    .describe(
      "A path over an item that yields its version, such as $.updatedAt: an item with a known id and another version is a new event, whose id is `<id>/<version>`.",
    ),
  order: z
    .enum(["ascending", "descending", "unordered"])
    .default("ascending")
    .describe(
      "How items stand on a page and pages follow each other: oldest first, newest first (events are published oldest first all the same), or as it happens.",
    ),
} as const;

const polledItemSchema = z.object(polledItemSettings);

/**
 * A delivery is a page as received, with `null` in place of each item that is not new. So paths and quarantine records still see the page
 * around an item and keep the item indexes, and known items are not stored twice.
 */
export const pollingProfile: KindProfile = {
  roots: new Map([
    ["headers", HEADERS_ROOT],
    ["body", BODY_ROOT],
  ]),
  itemOptions(settings) {
    const { itemId, order, versionPath } = polledItemSchema.parse(settings);
    return { itemId, versionPath, hasGaps: true, isNewestFirst: order === "descending" };
  },
};
