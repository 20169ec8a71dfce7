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
  /** Cursor of the next page, for lists that are paged by a cursor. `undefined` on the last page. */
  readonly next?: string | undefined;
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

const CURSOR = /^(\d{1,16})\.([A-Za-z0-9_]{1,64})$/;
/** Latest time of a `Date`, in ms. Positions in PostgreSQL are times. */
const MAX_SCORE = 8.64e15;
const CURSOR_MESSAGE = "must be the `X-Next-Cursor` of an earlier response; leave it out for the first page";

/** Query parameters for lists that are paged by a cursor, newest item first. */
export const newestQuery = {
  limit: pageQuery.limit,
  cursor: z
    .string()
    .regex(CURSOR, CURSOR_MESSAGE)
    .refine((text) => (parseCursor(text)?.score ?? 0) <= MAX_SCORE, CURSOR_MESSAGE)
    .optional()
    .meta({
      description:
        "Value of `X-Next-Cursor` in the response with the previous page. Default: the page with the newest items.",
      example: "1769851800000.del_01jc9x2k4v8m3n5p7q9r1s0",
    }),
} as const;

/** Position of an item in a list that is sorted by a number, such as its time, and then by id. */
interface Position {
  readonly score: number;
  readonly id: string;
}

export const formatCursor = ({ score, id }: Position): string => `${score}.${id}`;

/** Parses a cursor that matches the schema of `newestQuery`. */
export function parseCursor(text: string | undefined): Position | undefined {
  const [, score, id] = CURSOR.exec(text ?? "") ?? [];
  return score === undefined || id === undefined ? undefined : { score: Number(score), id };
}

/** Responds with the items as a JSON array and the total count in `X-Total-Count`. */
export function answerList<T>(c: Context, listed: Listed<T>): Response {
  c.header("X-Total-Count", String(listed.total));
  if (listed.next !== undefined) c.header("X-Next-Cursor", listed.next);
  return c.json(listed.items);
}
