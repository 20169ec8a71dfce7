import { z } from "zod";

/**
 * Where null may stand for nothing: `body`: for any field that may be left out; `part` of one: for those that are not nullable,
 * for a part may tell null from nothing; `patch`: for none, there it takes away, but in its lists, which are replaced whole.
 */
export type NullsIn = "body" | "part" | "patch";

/** A value as if nobody had written those nulls. What the schema does not look into is data, and null inside it stays. */
export function withoutNulls(schema: z.core.$ZodType, value: unknown, where: NullsIn = "part"): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (isWrapper(schema)) return withoutNulls(schema._zod.def.innerType, value, where);
  if (schema instanceof z.ZodPipe)
    return withoutNulls(schema.in instanceof z.ZodTransform ? schema.out : schema.in, value, where);
  if (schema instanceof z.ZodLazy) return withoutNulls(schema.unwrap(), value, where);
  if (schema instanceof z.ZodUnion) return withoutNullsOf(schema.options, value, where);
  if (schema instanceof z.ZodArray) {
    return Array.isArray(value) ? value.map((one) => withoutNulls(schema.element, one)) : value;
  }
  if (!(schema instanceof z.ZodObject) || Array.isArray(value)) return value;
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
  const fields = Object.entries(value).flatMap(([name, one]) => {
    const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (field === undefined) return [[name, one]];
    if (one === null && standsForNothing(field, where)) return [];
    return [[name, withoutNulls(field, one, where === "patch" ? where : "part")]];
  });
  // From entries, so that a member called __proto__ is one like any other.
  return Object.fromEntries(fields);
}

const standsForNothing = (field: z.core.$ZodType, where: NullsIn): boolean =>
  where !== "patch" && takes(field, undefined) && (where === "body" || !takes(field, null));

const takes = (schema: z.core.$ZodType, value: unknown): boolean => z.safeParse(schema, value).success;

/** As the first form that takes it so; where none does, as the one that its literals name, for what is said of it. */
function withoutNullsOf(forms: readonly z.core.$ZodType[], value: object, where: NullsIn): unknown {
  for (const form of forms) {
    const given = withoutNulls(form, value, where);
    if (takes(form, given)) return given;
  }
  const named = forms.find((form) => form instanceof z.ZodObject && hasLiteralsOf(form, value));
  return named === undefined ? value : withoutNulls(named, value, where);
}

const hasLiteralsOf = ({ shape }: z.ZodObject, value: object): boolean =>
  Object.entries(shape).some(
    ([name, field]) =>
      field instanceof z.ZodLiteral && takes(field, (value as Record<string, unknown>)[name]),
  );

const isWrapper = (
  schema: z.core.$ZodType,
): schema is z.core.$ZodType & { _zod: { def: { innerType: z.core.$ZodType } } } =>
  schema instanceof z.ZodOptional ||
  schema instanceof z.ZodNullable ||
  schema instanceof z.ZodDefault ||
  schema instanceof z.ZodPrefault ||
  schema instanceof z.ZodReadonly;
