import { z } from "zod";

/**
 * Selects the fields in which `null` means "omitted".
 * - `body`: every optional field.
 * - `part`: optional fields that are not nullable, because a nested object may distinguish `null` from an omitted field.
 * - `patch`: only fields inside lists, because a patch replaces lists as a whole. Elsewhere in a patch, `null` deletes the field.
 */
export type NullsIn = "body" | "part" | "patch";

/** Removes fields whose value `null` means "omitted". Values that are not in the schema stay unchanged. */
export function withoutNulls(schema: z.core.$ZodType, value: unknown, mode: NullsIn = "part"): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isWrapper(schema)) return withoutNulls(schema._zod.def.innerType, value, mode);
  if (schema instanceof z.ZodPipe)
    return withoutNulls(schema.in instanceof z.ZodTransform ? schema.out : schema.in, value, mode);
  if (schema instanceof z.ZodLazy) return withoutNulls(schema.unwrap(), value, mode);
  if (schema instanceof z.ZodUnion) return withoutNullsOf(schema.options, value, mode);
  if (schema instanceof z.ZodArray) {
    return Array.isArray(value) ? value.map((one) => withoutNulls(schema.element, one)) : value;
  }
  if (!(schema instanceof z.ZodObject) || Array.isArray(value)) return value;
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  const fields = Object.entries(value).flatMap(([name, one]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field === undefined) return [[name, one]];
    if (one === null && isOmittable(field, mode)) return [];
    return [[name, withoutNulls(field, one, mode === "patch" ? mode : "part")]];
  });
  // `fromEntries` creates an ordinary field even for the name `__proto__`.
  return Object.fromEntries(fields);
}

const isOmittable = (field: z.core.$ZodType, mode: NullsIn): boolean =>
  mode !== "patch" && accepts(field, undefined) && (mode === "body" || !accepts(field, null));

const accepts = (schema: z.core.$ZodType, value: unknown): boolean => z.safeParse(schema, value).success;

/**
 * Removes nulls with the first schema of a union that accepts the result. If none accepts it, uses the schema with matching literals, which
 * gives the best error message.
 */
function withoutNullsOf(forms: readonly z.core.$ZodType[], value: object, mode: NullsIn): unknown {
  for (const form of forms) {
    const given = withoutNulls(form, value, mode);
    if (accepts(form, given)) return given;
  }
  const named = forms.find((form) => form instanceof z.ZodObject && hasLiteralsOf(form, value));
  return named === undefined ? value : withoutNulls(named, value, mode);
}

const hasLiteralsOf = ({ shape }: z.ZodObject, value: object): boolean =>
  Object.entries(shape).some(
    ([name, field]) =>
      field instanceof z.ZodLiteral && accepts(field, (value as Record<string, unknown>)[name]),
  );

const isWrapper = (
  schema: z.core.$ZodType,
): schema is z.core.$ZodType & { _zod: { def: { innerType: z.core.$ZodType } } } =>
  schema instanceof z.ZodOptional ||
  schema instanceof z.ZodNullable ||
  schema instanceof z.ZodDefault ||
  schema instanceof z.ZodPrefault ||
  schema instanceof z.ZodReadonly;
