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

/** Refuses a setting, named by its path (`resume.param`). */
export type Refuse = (path: string, message: string) => void;

/** For settings that are allowed one by one, and not together. */
export const refuseIn =
  (context: z.RefinementCtx): Refuse =>
  (path, message) =>
    context.addIssue({ code: "custom", path: path === "" ? [] : path.split("."), message });
