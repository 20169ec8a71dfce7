import { z } from "zod";
import { invalidParameters } from "../../http/errors.ts";
import { mergePatch } from "../../lib/json/merge-patch.ts";
import { parseInput } from "./resource.ts";

/** Derives the body schema of a PUT from the body schema of a POST. All fields become optional; `applyPatch` applies the body. */
export const toPatchSchema = (input: z.ZodObject): z.ZodType<object> => z.strictObject(patchFields(input));

/** Like `toPatchSchema`, but the body must also contain the id. `withoutId` compares that id with the path. */
export const toPatchSchemaWithId = (input: z.ZodObject) =>
  z.strictObject({
    ...patchFields(input),
    id: z.string().meta({ description: "The same id as in the path." }),
  });

/** Removes `id` from a request body. @throws ApiError 400 if it differs from the id in the path */
export function withoutId(id: string, patch: { readonly id: string }): object {
  if (patch.id !== id) throw invalidParameters([{ path: "id", message: "must equal the id in the path" }]);
  const { id: _, ...changes } = patch;
  return changes;
}

function patchFields(input: z.ZodObject): Record<string, z.ZodType> {
  const fields = Object.entries(input.shape) as [string, z.ZodType][];
  return Object.fromEntries(fields.map(([name, field]) => [name, patchField(field)]));
}

function patchField(field: z.ZodType): z.ZodType {
  if (!field.safeParse(undefined).success) return field.optional();
  // Remove the schema's default, which would otherwise overwrite the stored value when the patch omits the field.
  const given = field instanceof z.ZodDefault ? (field.unwrap() as z.ZodType) : field;
  const patched = (given instanceof z.ZodObject ? toPatchSchema(given) : given).optional();
  const meta = field.meta();
  return meta ? patched.meta(meta) : patched;
}

/**
 * Applies a JSON Merge Patch (RFC 7396) and validates the result.
 *
 * `null` clears a nullable field. Objects with declared members are merged. A free-form value is replaced as a whole, so a
 * `null` inside of it is data.
 *
 * @throws ApiError 400 when the result does not match the schema
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
