import { z } from "zod";

const MAX_CHARS = 65_536;
const fits = (value: unknown): boolean => (JSON.stringify(value) ?? "").length <= MAX_CHARS;

/** Keeps it at a size that a page of them can have; merge patches would let it grow without end. */
export const bounded = <S extends z.ZodType>(json: S): S =>
  json.refine(fits, `must be ${MAX_CHARS} characters of JSON at most`);

/** Any JSON that a client keeps with an entity, or null. */
export const freeFormInput = bounded(z.unknown()).default(null).meta({ description: "Anything, or null." });

/** The same by names; none: empty. */
export const mapInput = bounded(z.record(z.string(), z.unknown()))
  .default({})
  .meta({ description: "Anything, by names.", example: {} });

/** As it is written to a column: SQL's null for none. */
export const freeFormText = (value: unknown): string | null =>
  value === null ? null : JSON.stringify(value);
