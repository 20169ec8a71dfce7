import type { JsonSchema } from "./schemas.ts";

const TEXT = "text";

const BY_FORMAT: Readonly<Record<string, string>> = {
  "date-time": "2026-01-31T09:30:00.000Z",
  uri: "https://example.com/",
  email: "someone@example.com",
};

/** Example values for string fields, keyed by field name. Used if the schema has no example and no format. */
const BY_NAME: Readonly<Record<string, string>> = {
  title: "Example",
  name: "Example",
  description: "An example.",
  firstName: "Ada",
  lastName: "Lovelace",
  uid: "main",
  topic: "events.org.apps.app.event_received.app.main.push",
  entryId: "1769851800000-0",
};

type Components = Readonly<Record<string, JsonSchema>>;

/**
 * Builds an example value from a schema. Objects get their required fields and the fields with an example.
 * @param open names of the components being built, to detect recursion; a recursive reference yields `undefined`
 */
export function buildExample(
  schema: JsonSchema,
  components: Components,
  open: readonly string[] = [],
): unknown {
  const { $ref, examples, type, items } = schema;
  if (Array.isArray(examples)) return examples[0];
  if ("default" in schema) return schema.default;
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const within = (part: JsonSchema): unknown => buildExample(part, components, open);
  if (typeof $ref === "string") {
    const name = $ref.slice($ref.lastIndexOf("/") + 1);
    return open.includes(name)
      ? undefined
      : buildExample(components[name] ?? {}, components, [...open, name]);
  }
  for (const variants of [schema.anyOf, schema.oneOf, schema.allOf]) {
    if (!Array.isArray(variants)) continue;
    const values = variants.filter((one) => "default" in one);
    return [...values, ...variants].map(within).find((value) => value !== undefined);
  }
  switch (Array.isArray(type) ? type[0] : type) {
    case "object":
      return objectExample(schema, within);
    case "array": {
      const item = isSchema(items) ? within(items) : undefined;
      return item === undefined ? [] : [item];
    }
    case "integer":
    case "number":
      return typeof schema.minimum === "number" ? schema.minimum : 1;
    case "boolean":
      return true;
    case "string":
      return BY_FORMAT[String(schema.format)] ?? TEXT;
    case "null":
      return null;
    default:
      return {};
  }
}

function byName(name: string, value: unknown): unknown {
  if (value !== TEXT) return value;
  // `projectId` gets the example `project-1`, because such ids belong to other systems.
  const [, what] = /^(.+)Id$/.exec(name) ?? [];
  return BY_NAME[name] ?? (what === undefined ? TEXT : `${what}-1`);
}

function objectExample(
  { properties, required }: JsonSchema,
  within: (part: JsonSchema) => unknown,
): Readonly<Record<string, unknown>> {
  const names: readonly unknown[] = Array.isArray(required) ? required : [];
  const fields = Object.entries(isSchema(properties) ? properties : {})
    .filter(([name, part]) => names.includes(name) || (isSchema(part) && "examples" in part))
    .map(([name, part]) => [name, isSchema(part) ? byName(name, within(part)) : null] as const);
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

const isSchema = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
