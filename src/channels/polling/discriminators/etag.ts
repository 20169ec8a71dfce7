import { z } from "zod";
import { MAX_KEYS } from "../cursor/position.ts";
import { type Discriminator, rejectStartValue } from "./discriminator.ts";
import { compileSeen, showSeen } from "./seen.ts";

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
    ...compileSeen({ ...context, maxKeys: MAX_KEYS, keepsAll: false }, MUST_BE),
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
