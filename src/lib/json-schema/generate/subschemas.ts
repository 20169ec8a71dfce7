/** Keywords whose value is a subschema or an array of subschemas. Only `items` allows both. */
const SINGLE = new Set([
  ...["additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames"],
  ...["then", "unevaluatedItems", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "prefixItems"],
]);
/**
 * Keywords whose value is an object of named subschemas. The object in `dependencies` may also contain arrays of property names.
 */
const MAPS = new Set([
  ...["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"],
]);

export interface Subschema {
  readonly keyword: string;
  /** JSON Pointer relative to the parent schema. */
  readonly pointer: string;
  readonly schema: unknown;
}

/** Yields the direct subschemas of a schema, including those in its definitions. */
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

/** Escapes a member name for use in a JSON Pointer (RFC 6901, section 3). */
export const escapeStep = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");
