import { isNode, type References } from "../generate/references.ts";

/** JSON types as JSON Schema names them. An integer also has the type `number`. */
export type JsonType = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

/** Schemas that refer to themselves are followed this far. */
const MAX_DEPTH = 16;

/** Returns the most specific JSON type of a value. `undefined` for values that are not JSON. */
export function typeOf(value: unknown): JsonType | undefined {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (Number.isInteger(value)) return "integer";
  const type = typeof value;
  return type === "number" || type === "boolean" || type === "string" || type === "object" ? type : undefined;
}

/** Returns whether a schema accepts some value of the type. Considers only the keywords that name types, values or other schemas. */
export function accepts(schema: unknown, type: JsonType, references: References, depth = 0): boolean {
  if (!isNode(schema) || depth > MAX_DEPTH) return schema !== false;
  const isAccepted = (one: unknown): boolean => accepts(one, type, references, depth + 1);
  const { type: declared, enum: values, allOf, anyOf, oneOf } = schema;
  const types = Array.isArray(declared) ? declared : declared === undefined ? undefined : [declared];
  if (types && !types.includes(type) && !(type === "integer" && types.includes("number"))) return false;
  if (Array.isArray(values) && !values.some((value) => typeOf(value) === type)) return false;
  if ("const" in schema && typeOf(schema.const) !== type) return false;
  if (!(references.targets.get(schema) ?? []).every(isAccepted)) return false;
  if (Array.isArray(allOf) && !allOf.every(isAccepted)) return false;
  return [anyOf, oneOf].every((branches) => !Array.isArray(branches) || branches.some(isAccepted));
}
