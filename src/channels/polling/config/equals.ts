import { z } from "zod";
import type { RulePath } from "../../../normalize/compile.ts";

/** Value to which a setting compares a value of a page. */
export const equalsSchema = z.union([z.string(), z.number(), z.boolean()]);

/** Returns whether the value at the path equals the given one. False without a path or without a value to compare. */
export function selectsValue(
  page: { readonly read: (path: RulePath) => unknown },
  path: RulePath | undefined,
  equals: z.output<typeof equalsSchema> | undefined,
): boolean {
  if (path === undefined || equals === undefined) return false;
  const found = page.read(path);
  // Numbers are compared by value, because the page returns them as text: `1.0` equals `1`.
  return typeof equals === "number"
    ? typeof found === "string" && found !== "" && Number(found) === equals
    : String(found) === String(equals);
}
