import { z } from "zod";
import { invalidParameters } from "../../http/problem.ts";
import { mergePatch } from "../../lib/json/merge-patch.ts";
import { parseInput } from "./resource.ts";

/** The body of a PUT where `input` is that of a POST: any of its fields. `applyPatch` makes the whole of it. */
export const toPatchSchema = (input: z.ZodObject): z.ZodType<object> => z.strictObject(patchFields(input));

/** The same where the body repeats the id that is in the path: see `withoutId`. */
export const toPatchSchemaWithId = (input: z.ZodObject) =>
  z.strictObject({
    ...patchFields(input),
    id: z.string().meta({ description: "The id that is in the path." }),
  });

/** The changes in a body that repeats its path's id. @throws ApiError 400 where it names another */
export function withoutId(id: string, patch: { readonly id: string }): object {
  if (patch.id !== id)
    throw invalidParameters([{ path: "id", message: "must be the id that is in the path" }]);
  const { id: _, ...changes } = patch;
  return changes;
}

function patchFields(input: z.ZodObject): Record<string, z.ZodType> {
  const fields = Object.entries(input.shape) as [string, z.ZodType][];
  return Object.fromEntries(fields.map(([name, field]) => [name, patchField(field)]));
}

function patchField(field: z.ZodType): z.ZodType {
  if (!field.safeParse(undefined).success) return field.optional();
  // A default would fill in what a patch leaves alone.
  const given = field instanceof z.ZodDefault ? (field.unwrap() as z.ZodType) : field;
  return (given instanceof z.ZodObject ? toPatchSchema(given) : given).optional().meta(field.meta() ?? {});
}

/**
 * The content after the patch (RFC 7396); null clears a field that is nullable. Objects of known members merge; a
 * free-form value is replaced whole, and null inside it is data.
 *
 * @throws ApiError 400
 */
export function applyPatch<S extends z.ZodObject>(input: S, before: z.output<S>, patch: object): z.output<S> {
  const merged = mergePatch(before, patch) as object;
  const whole = Object.entries(patch).filter(
    ([name, value]) => value !== null && !(unwrapSchema(input.shape[name]) instanceof z.ZodObject),
  );
  return parseInput(input, { ...merged, ...Object.fromEntries(whole) });
}

const unwrapSchema = (field: unknown): unknown =>
  field instanceof z.ZodDefault || field instanceof z.ZodOptional || field instanceof z.ZodNullable
    ? unwrapSchema(field.unwrap())
    : field;
