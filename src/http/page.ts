import type { Context } from "hono";
import { z } from "zod";

const MAX_LIMIT = 200;
const DEFAULT_LIMIT = 50;
const MAX_OFFSET = 999_999_999_999_999;

export interface Page {
  readonly limit: number;
  readonly offset: number;
}

export interface Listed<T> {
  /** Items of the page. Their order is the same in all requests. */
  readonly items: readonly T[];
  /** Total number of items on all pages. */
  readonly total: number;
}

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, "must be a whole number")
  .transform(Number);

export const pageQuery = {
  limit: wholeNumber
    .pipe(z.int().min(1).max(MAX_LIMIT))
    .default(DEFAULT_LIMIT)
    .meta({
      description: "Maximum number of items.",
      shown: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
    }),
  offset: wholeNumber
    .pipe(z.int().min(0))
    .default(0)
    .meta({
      description: "Number of items to skip.",
      shown: { type: "integer", minimum: 0, maximum: MAX_OFFSET, default: 0 },
    }),
} as const;

export const pageQuerySchema = z.object(pageQuery);

/** Query parameters for short lists. Without `limit`, the response contains all items. */
export const shortListQuery = z.object({
  ...pageQuery,
  limit: pageQuery.limit
    .unwrap()
    .optional()
    .meta({
      description: "Maximum number of items. Default: all.",
      shown: { type: "integer", minimum: 1, maximum: MAX_LIMIT },
    }),
});

/** The `pagination` field in the body of `POST …/list`. */
export const pageBody = {
  pagination: z
    .strictObject({
      limit: z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT),
      offset: z.int().min(0).max(MAX_OFFSET).default(0),
    })
    .prefault({}),
} as const;

export const pageBodySchema = z.strictObject(pageBody);

/** Responds with the items as a JSON array and the total count in `X-Total-Count`. */
export function answerList<T>(c: Context, listed: Listed<T>): Response {
  c.header("X-Total-Count", String(listed.total));
  return c.json(listed.items);
}
