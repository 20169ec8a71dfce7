import { z } from "zod";
import { integer, pathText, text } from "../../../event/config-fields.ts";
import { equalsSchema } from "../config/equals.ts";

const name = text(256);

const guards = {
  maxPages: integer(1, 10_000, 100).describe(
    "Maximum number of pages per poll. In ascending order, and in descending order by `timestamp` or `sequence`, the next poll continues after the last page. Otherwise a poll that needs more pages fails, but no items are lost.",
  ),
  maxItems: integer(1, 1_000_000, 100_000).describe(
    "Maximum number of items read per poll, including known ones. Exceeding it has the same effect as exceeding `maxPages`.",
  ),
} as const;

const endings = {
  hasMorePath: pathText
    .optional()
    .describe("Path in the page to a boolean that is true on every page except the last."),
  lastPagePath: pathText
    .optional()
    .describe("Path in the page to a boolean that is true only on the last page, such as $.isLast."),
  hasMore: z
    .strictObject({
      path: pathText.describe("Path to a value in the page."),
      equals: equalsSchema.describe("Value at `path` on every page except the last."),
    })
    .optional()
    .describe("Condition that is true on every page except the last. Pages may lack the value."),
} as const;

const counted = {
  param: name
    .optional()
    .describe(
      "Query parameter that carries the number of the page. If it is not set, the request must contain {{page}}.",
    ),
  pageSize: integer(1, 100_000)
    .optional()
    .describe(
      "Number of items per page. A page with fewer items is the last one. Without it, only an empty page is the last one.",
    ),
  ...endings,
  ...guards,
} as const;

export const paginationSchema = z
  .discriminatedUnion("by", [
    z.strictObject({
      by: z.literal("linkHeader").describe("The `Link` header (RFC 8288) contains the URL of the next page."),
      relation: name.default("next").describe("Relation (`rel`) of the link."),
      ...guards,
    }),
    z.strictObject({
      by: z.literal("nextUrlPath").describe("Each page contains the URL of the next page."),
      path: pathText.describe("Path to the URL in the page. The URL may be relative."),
      ...endings,
      ...guards,
    }),
    z.strictObject({
      by: z.literal("cursorToken").describe("Each page contains a token for the next page."),
      path: pathText.describe("Path to the token in the page. The last page has no token, or its own token."),
      in: z.enum(["query", "body"]).default("query").describe("Part of the request that carries the token."),
      name: name
        .optional()
        .describe(
          "Name of the query parameter or body member. Without it, the request must contain {{page}}.",
        ),
      ...endings,
      ...guards,
    }),
    z.strictObject({
      by: z
        .literal("offset")
        .describe("Each page is requested by its offset: the number of items before it."),
      ...counted,
    }),
    z.strictObject({
      by: z.literal("page").describe("Each page is requested by its number."),
      first: integer(0, 1, 1).describe("Number of the first page."),
      ...counted,
    }),
  ])
  .describe(
    "How to get from one page to the next. Pages must be at the origin of the URL, or at an origin that the connection allows.",
  );

/** At most one setting may say which page is the last one. */
export const ENDINGS = Object.keys(endings) as readonly (keyof typeof endings)[];

export type PaginationConfig = z.output<typeof paginationSchema>;
