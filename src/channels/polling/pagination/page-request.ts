import { z } from "zod";

/** The page to request. */
export const pageRequestSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("first") }),
  z.strictObject({ kind: z.literal("url"), url: z.string() }),
  z.strictObject({ kind: z.literal("token"), token: z.string() }),
  /** A page number, or an offset in items. */
  z.strictObject({ kind: z.literal("number"), number: z.int() }),
]);

export type PageRequest = z.output<typeof pageRequestSchema>;

export const FIRST_PAGE: PageRequest = { kind: "first" };
