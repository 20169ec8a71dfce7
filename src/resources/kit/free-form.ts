import { z } from "zod";

const MAX_CHARS = 65_536;

/** Limits the size of a value's JSON, because a list response can contain a full page of such values. */
export const bounded = <S extends z.ZodType>(json: S, maxChars = MAX_CHARS): S =>
  json.refine(
    (value) => (JSON.stringify(value) ?? "").length <= maxChars,
    `must be at most ${maxChars} characters as JSON`,
  );

export const freeFormInput = bounded(z.unknown())
  .default(null)
  .meta({ description: "Any JSON value, or null." });

const isMap = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Schema of a JSON object with any member names. `z.record` is unsuitable, because it drops a member named `__proto__`. */
export const mapInput = bounded(
  z.custom<Readonly<Record<string, unknown>>>().refine(isMap, "must be an object"),
)
  .default({})
  .meta({
    description: "A JSON object with any members.",
    shown: { type: "object", additionalProperties: {} },
  });

/** Converts a value for a JSON column. `null` becomes SQL NULL, not the JSON text `null`. */
export const toJsonColumn = (value: unknown): string | null =>
  value === null ? null : JSON.stringify(value);
