/** Keywords whose value is a subschema, or a list of them (`items` may be either). */
const SINGLE = new Set([
  ...["additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames"],
  ...["then", "unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems"],
]);
/** Keywords whose value is a map of subschemas by name; in `dependencies` a list of names may stand for one. */
const MAPS = new Set([
  ...["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"],
]);

/** A subschema and where it stands, as a JSON Pointer from the schema that holds it. */
export interface Subschema {
  readonly keyword: string;
  readonly pointer: string;
  readonly schema: unknown;
}

/** The schemas directly in a schema: those that are applied with it, and those that wait to be referred to. */
export function* subschemasOf(schema: object): Generator<Subschema> {
  for (const [keyword, value] of Object.entries(schema)) {
    const isMap = MAPS.has(keyword);
    if (!isMap && !SINGLE.has(keyword)) continue;
    if (typeof value === "object" && value !== null && (isMap || Array.isArray(value))) {
      for (const [name, child] of Object.entries(value)) {
        yield { keyword, pointer: `/${keyword}/${escapeStep(name)}`, schema: child };
      }
    } else yield { keyword, pointer: `/${keyword}`, schema: value };
  }
}

export const isDefinition = (keyword: string): boolean => keyword === "$defs" || keyword === "definitions";

/** A member's name as a step of a JSON Pointer (RFC 6901 section 3). */
export const escapeStep = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");
