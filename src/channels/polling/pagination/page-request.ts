import { z } from "zod";

/** The page to request: the first page, or a later page that is identified by a number, a token or a URL. */
export const pageRequestSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("first") }),
  z.strictObject({ kind: z.literal("url"), url: z.string() }),
  z.strictObject({ kind: z.literal("token"), token: z.string() }),
  /** Page number, or offset of the page's first item. */
  z.strictObject({ kind: z.literal("number"), number: z.int() }),
]);

export type PageRequest = z.output<typeof pageRequestSchema>;

export const FIRST_PAGE: PageRequest = { kind: "first" };
