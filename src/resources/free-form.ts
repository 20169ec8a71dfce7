import { z } from "zod";

const MAX_CHARS = 65_536;
const fits = (value: unknown): boolean => (JSON.stringify(value) ?? "").length <= MAX_CHARS;
const TOO_LONG = `must be ${MAX_CHARS} characters of JSON at most`;

/** Any JSON that a client keeps with an entity, or null. */
export const freeFormInput = z
  .unknown()
  .refine(fits, TOO_LONG)
  .default(null)
  .meta({ description: "Anything, or null." });

/** The same by names; none: empty. */
export const mapInput = z
  .record(z.string(), z.unknown())
  .refine(fits, TOO_LONG)
  .default({})
  .meta({ description: "Anything, by names.", example: {} });

/** As it is written to a column: SQL's null for none. */
export const freeFormText = (value: unknown): string | null =>
  value === null ? null : JSON.stringify(value);
