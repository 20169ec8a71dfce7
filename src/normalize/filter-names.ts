import type { Finding } from "../lib/errors.ts";
import type { JsonSchema } from "../lib/json-schema/compiled-schema.ts";
import { getFilterRoots, ITEM_NAME } from "./filter.ts";
import { HEADERS_ROOT, type KindProfile } from "./profile.ts";

type SchemaObject = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is SchemaObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const getKeys = (value: unknown): readonly string[] => (isObject(value) ? Object.keys(value) : []);

/** Keywords whose subschemas apply to the same value as the schema itself. */
const SCHEMA_KEYWORDS = ["not", "if", "then", "else"];
const LIST_KEYWORDS = ["allOf", "anyOf", "oneOf"];

/** Returns the schema and the subschemas that apply to the same value. Does not follow `$ref`. */
function listInPlace(schema: unknown): readonly SchemaObject[] {
  if (!isObject(schema)) return [];
  const nested = [
    ...SCHEMA_KEYWORDS.map((keyword) => schema[keyword]),
    ...LIST_KEYWORDS.flatMap((keyword) => schema[keyword] ?? []),
    ...Object.values(isObject(schema.dependentSchemas) ? schema.dependentSchemas : {}),
  ];
  return [schema, ...nested.flatMap(listInPlace)];
}

/** Returns the names of the members that a schema mentions. Does not follow `$ref`. */
export const findNames = (schema: JsonSchema): readonly string[] => [
  ...new Set(
    listInPlace(schema).flatMap(({ properties, required, dependentRequired }) => [
      ...getKeys(properties),
      ...(Array.isArray(required) ? required.filter((name) => typeof name === "string") : []),
      ...getKeys(dependentRequired),
    ]),
  ),
];

/** Returns the names of the members that a schema mentions inside of one member, such as the names of headers. */
export const findNamesIn = (schema: JsonSchema, member: string): readonly string[] =>
  listInPlace(schema).flatMap(({ properties }) => {
    const inside = isObject(properties) && Object.hasOwn(properties, member) ? properties[member] : undefined;
    return isObject(inside) ? findNames(inside) : [];
  });

/**
 * Returns the errors of a `when` that names values it cannot see. JSON Schema ignores such names, so the `when` would match every item, or
 * none.
 */
export function findFilterErrors(when: JsonSchema, profile: KindProfile): readonly Finding[] {
  const roots = getFilterRoots(profile);
  const known = [...roots.map(([name]) => name), ITEM_NAME];
  const list = known.map((name) => `\`${name}\``).join(", ");
  const unknown = findNames(when)
    .filter((name) => !known.includes(name))
    .map((name) => ({
      path: "",
      message: `names ${JSON.stringify(name)}, but must only name ${list}; values of the item belong inside of \`${ITEM_NAME}\``,
    }));
  const headers = roots
    .filter(([, root]) => root === HEADERS_ROOT)
    .flatMap(([member]) => findNamesIn(when, member))
    .filter((name) => name !== name.toLowerCase())
    .map((name) => ({
      path: "",
      message: `names the header ${JSON.stringify(name)}, but header names are in lower case; use ${JSON.stringify(name.toLowerCase())}`,
    }));
  return [...unknown, ...headers];
}
