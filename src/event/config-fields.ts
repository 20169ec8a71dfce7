import { z } from "zod";

export function integer(min: number, max: number): z.ZodInt;
export function integer(min: number, max: number, fallback: number): z.ZodDefault<z.ZodInt>;
export function integer(min: number, max: number, fallback?: number): z.ZodInt | z.ZodDefault<z.ZodInt> {
  const schema = z.int().min(min).max(max);
  return fallback === undefined ? schema : schema.default(fallback);
}

export const text = (maxChars: number): z.ZodString => z.string().min(1).max(maxChars);

export const pathText = text(1024);

/** Reports an invalid field at a dotted path, such as `resume.param`. */
export type ReportIssue = (path: string, message: string) => void;

/** Returns a function that rejects fields which are valid alone but not in combination. */
export const createIssueReporter =
  (context: z.RefinementCtx): ReportIssue =>
  (path, message) =>
    context.addIssue({ code: "custom", path: path === "" ? [] : path.split("."), message });
