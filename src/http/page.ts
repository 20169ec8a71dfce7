import type { Context } from "hono";
import { z } from "zod";

const MAX_LIMIT = 200;
const DEFAULT_LIMIT = 50;
const MAX_OFFSET = 999_999_999_999_999;

/** Which part of a list. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** A part of a list in its stable order, and how many there are in all. */
export interface Listed<T> {
  readonly items: readonly T[];
  readonly total: number;
}

const wholeNumber = z
  .string()
  .regex(/^\d{1,15}$/, "must be a whole number")
  .transform(Number);

/** `limit` and `offset` as they stand in a query; extend it by a list's own filters. */
export const pageQuery = {
  limit: wholeNumber
    .pipe(z.int().min(1).max(MAX_LIMIT))
    .default(DEFAULT_LIMIT)
    .meta({
      description: "How many at most.",
      shown: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
    }),
  offset: wholeNumber
    .pipe(z.int().min(0))
    .default(0)
    .meta({
      description: "How many of the first ones to leave out.",
      shown: { type: "integer", minimum: 0, maximum: MAX_OFFSET, default: 0 },
    }),
} as const;

export const pageQuerySchema = z.object(pageQuery);

/** The same of a list that is short, and whole where no limit is given. */
export const shortListQuery = z.object({
  ...pageQuery,
  limit: pageQuery.limit
    .unwrap()
    .optional()
    .meta({
      description: "How many at most. Default: all.",
      shown: { type: "integer", minimum: 1, maximum: MAX_LIMIT },
    }),
});

/** `pagination` as it stands in the body of a `POST …/list`; extend it by a list's own filters. */
export const pageBody = {
  pagination: z
    .strictObject({
      limit: z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT),
      offset: z.int().min(0).max(MAX_OFFSET).default(0),
    })
    .prefault({}),
} as const;

export const pageBodySchema = z.strictObject(pageBody);

/** The list as the API answers it: a bare array, the full count beside it. */
export function answerList<T>(c: Context, listed: Listed<T>): Response {
  c.header("X-Total-Count", String(listed.total));
  return c.json(listed.items);
}
