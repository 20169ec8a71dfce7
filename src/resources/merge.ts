import { z } from "zod";
import { mergePatch } from "../lib/merge-patch.ts";
import { parseInput } from "./resource.ts";

/**
 * What a PUT may hold where a POST holds `input`: each field by itself, and null where a field can do without a value. It only
 * tells what fits; `applyPatch` makes the whole.
 */
export function patchOf(input: z.ZodObject): z.ZodType<object> {
  const fields = Object.entries(input.shape) as [string, z.ZodType][];
  return z.strictObject(Object.fromEntries(fields.map(([name, field]) => [name, patchField(field)])));
}

function patchField(field: z.ZodType): z.ZodType {
  if (!field.safeParse(undefined).success) return field.optional();
  // A default would fill in what a patch leaves alone.
  const bare = field instanceof z.ZodDefault ? (field.unwrap() as z.ZodType) : field;
  return bare
    .nullable()
    .optional()
    .meta(field.meta() ?? {});
}

/** What is written of `before` after the patch (RFC 7396); null puts a field back to its default. @throws ApiError 400 */
export const applyPatch = <S extends z.ZodObject>(
  input: S,
  before: z.output<S>,
  patch: object,
): z.output<S> => parseInput(input, mergePatch(before, patch));
