import { z } from "zod";

/** A setting that is a whole number within bounds, with its default where it has one. */
export function integer(min: number, max: number): z.ZodInt;
export function integer(min: number, max: number, fallback: number): z.ZodDefault<z.ZodInt>;
export function integer(min: number, max: number, fallback?: number): z.ZodInt | z.ZodDefault<z.ZodInt> {
  const schema = z.int().min(min).max(max);
  return fallback === undefined ? schema : schema.default(fallback);
}

/** A setting that is a text with something in it. */
export const text = (maxChars: number): z.ZodString => z.string().min(1).max(maxChars);

/** A setting that is a path over a body or an item. */
export const pathText = text(1024);
