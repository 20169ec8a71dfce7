import { z } from "zod";

const MAX_CHARS = 65_536;

/** Keeps it at a size that a page of them can have. */
export const bounded = <S extends z.ZodType>(json: S, maxChars = MAX_CHARS): S =>
  json.refine(
    (value) => (JSON.stringify(value) ?? "").length <= maxChars,
    `must be ${maxChars} characters of JSON at most`,
  );

/** Any JSON that a client keeps with an entity, or null. */
export const freeFormInput = bounded(z.unknown()).default(null).meta({ description: "Anything, or null." });

const isMap = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The same by names, of which each is as good as another: a record of zod leaves `__proto__` out. None: empty. */
export const mapInput = bounded(
  z.custom<Readonly<Record<string, unknown>>>().refine(isMap, "must be an object"),
)
  .default({})
  .meta({
    description: "Anything, by names.",
    shown: { type: "object", additionalProperties: {} },
  });

/** As it is written to a column: SQL's null for none. */
export const toJsonColumn = (value: unknown): string | null =>
  value === null ? null : JSON.stringify(value);
