import { z } from "zod";
import { integer, pathText, text } from "../../../event/setting-fields.ts";

const name = text(256);

const guards = {
  maxPages: integer(1, 10_000, 100).describe(
    "So many pages are read in one poll. Where items come oldest first the next poll goes on behind them; else a poll that needs more fails, and nothing is lost.",
  ),
  maxItems: integer(1, 1_000_000, 100_000).describe(
    "So many items, known ones included, are read in one poll; what is beyond is treated as pages are.",
  ),
} as const;

const hasMorePath = pathText
  .optional()
  .describe("A path over the page that yields false, or nothing, on the last one.");

const counted = {
  param: name.optional().describe("The query parameter; without it {{page}} says where the number goes."),
  pageSize: integer(1, 100_000)
    .optional()
    .describe("A page with fewer items is the last; without it only an empty one is."),
  hasMorePath,
  ...guards,
} as const;

export const paginationSettings = z
  .discriminatedUnion("by", [
    z.strictObject({
      by: z.literal("linkHeader").describe("The header Link (RFC 8288) holds the address of the next page."),
      relation: name.default("next").describe("The relation (rel) of the link."),
      ...guards,
    }),
    z.strictObject({
      by: z.literal("nextUrlPath").describe("The page holds the address of the next one."),
      path: pathText.describe("A path over the page that yields the address, also a relative one."),
      ...guards,
    }),
    z.strictObject({
      by: z.literal("cursorToken").describe("The page holds a token by which the next one is asked for."),
      path: pathText.describe("A path over the page that yields the token; the last page has none."),
      in: z.enum(["query", "body"]).default("query").describe("Where the token is sent."),
      name: name
        .optional()
        .describe(
          "The query parameter, or the member of the body; without it {{page}} says where the token goes.",
        ),
      hasMorePath,
      ...guards,
    }),
    z.strictObject({
      by: z.literal("offset").describe("The next page is asked for by how many items come before it."),
      ...counted,
    }),
    z.strictObject({
      by: z.literal("page").describe("The next page is asked for by its number."),
      first: integer(0, 1, 1).describe("The number of the first page."),
      ...counted,
    }),
  ])
  .describe(
    "How one page leads to the next. Pages are followed within the origin of the url, and to those that the connection allows.",
  );

export type PaginationSettings = z.output<typeof paginationSettings>;
