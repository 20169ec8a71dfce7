import { z } from "zod";

/** A JSON Schema as it stands in the document (OpenAPI 3.1: draft 2020-12). */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Turns the schemas that validate into those that document; what has an `id` becomes a component. */
export interface SchemaWriter {
  /** For requests: a body may hold null for any field that may be left out, a patch only where the field is nullable. */
  readonly input: (schema: z.ZodType, as?: "body" | "patch") => JsonSchema;
  /** For answers. */
  readonly output: (schema: z.ZodType) => JsonSchema;
  readonly components: () => Readonly<Record<string, JsonSchema>>;
}

type Mutable = Record<string, unknown>;

export function createSchemaWriter(): SchemaWriter {
  const components = new Map<string, JsonSchema>();
  type Way = "input" | "body" | "patch" | "output";
  const written = new Map<Way, Map<z.ZodType, JsonSchema>>();

  /** Many operations take and answer the same. */
  function writeOnce(schema: z.ZodType, way: Way): JsonSchema {
    const known = written.get(way) ?? new Map<z.ZodType, JsonSchema>();
    written.set(way, known);
    const found = known.get(schema) ?? write(schema, way);
    known.set(schema, found);
    return found;
  }

  function write(schema: z.ZodType, way: Way): JsonSchema {
    const io = way === "output" ? "output" : "input";
    const { properties, $defs = {} } = z.toJSONSchema(z.object({ root: schema }), {
      io,
      unrepresentable: "any",
      override: ({ jsonSchema }) => polish(jsonSchema as Mutable, io),
    }) as unknown as {
      readonly properties: { readonly root: JsonSchema };
      readonly $defs?: Record<string, JsonSchema>;
    };
    const nullable = (one: JsonSchema, isPatch = false): JsonSchema =>
      io === "input" ? withNulls(one, $defs, isPatch) : one;
    const named = Object.entries($defs)
      .filter(([id]) => !id.startsWith(NAMELESS))
      .map(([id, one]) => [id, nullable(one)] as const);
    const names = new Map(named.map(([id, one]) => [id, nameOf(id, one, io)] as const));
    const relinked = (part: JsonSchema): JsonSchema => relink(part, names, $defs);
    for (const [id, one] of named) components.set(names.get(id) ?? id, relinked(one));
    const isBody = way === "body" || way === "patch";
    return relinked(isBody ? nullable(properties.root, way === "patch") : properties.root);
  }

  /** A body may differ from its answer by its defaults: then it is a component of its own. */
  function nameOf(id: string, schema: JsonSchema, io: "input" | "output"): string {
    if (io === "output") return id;
    const answered = components.get(id);
    if (!answered) return id;
    return JSON.stringify(answered) === JSON.stringify(relink(schema, new Map(), {})) ? id : `${id}Input`;
  }

  return {
    input: (schema, as) => writeOnce(schema, as ?? "input"),
    output: (schema) => writeOnce(schema, "output"),
    components: () => Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/**
 * `shown` (in a schema's meta) stands for what JSON Schema cannot tell from it: a number that comes as text. An answer may gain
 * fields: objects of answers are left open. The pattern of a time repeats its format at length.
 */
function polish(schema: Mutable, io: "input" | "output"): void {
  const { shown, example } = schema;
  if (typeof shown === "object" && shown !== null) {
    const kept = ["description", "default"];
    for (const keyword of Object.keys(schema)) if (!kept.includes(keyword)) delete schema[keyword];
    Object.assign(schema, shown);
  }
  if (example !== undefined) {
    delete schema.example;
    schema.examples = [example];
  }
  // A schema that takes anything takes null too.
  if (Array.isArray(schema.anyOf) && schema.anyOf.some(isAny)) delete schema.anyOf;
  // A type that TypeScript keeps from being changed is none that clients must not send.
  delete schema.readOnly;
  if (io === "output" && schema.additionalProperties === false) delete schema.additionalProperties;
  if (typeof schema.format === "string") delete schema.pattern;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

type Definitions = Readonly<Record<string, JsonSchema>>;

/** The schema with null for each field that may be left out; in a patch not for its own, but within its lists. */
function withNulls(schema: JsonSchema, defs: Definitions, isPatch: boolean): JsonSchema {
  const changed: Mutable = { ...schema };
  const { properties, required = [], items, additionalProperties } = schema;
  const within = (one: unknown, patch = isPatch): JsonSchema => withNulls(one as JsonSchema, defs, patch);
  for (const keyword of ["anyOf", "oneOf", "allOf"]) {
    const forms = schema[keyword];
    if (Array.isArray(forms)) changed[keyword] = forms.map((one) => within(one));
  }
  if (typeof items === "object") changed.items = within(items, false);
  if (typeof additionalProperties === "object") changed.additionalProperties = within(additionalProperties);
  if (typeof properties === "object") {
    const fields = Object.entries(properties as Definitions).map(([name, one]) => {
      const field = within(one);
      const isLeft = !isPatch && !(required as readonly string[]).includes(name);
      return [name, isLeft && !takesNull(field, defs) ? orNull(field) : field];
    });
    changed.properties = Object.fromEntries(fields);
  }
  return changed;
}

function takesNull({ $ref, type, anyOf, oneOf, ...others }: JsonSchema, defs: Definitions): boolean {
  if (typeof $ref === "string") return takesNull(defs[$ref.slice(LOCAL.length)] ?? {}, defs);
  const forms = anyOf ?? oneOf;
  if (Array.isArray(forms)) return forms.some((one: JsonSchema) => takesNull(one, defs));
  if (type === undefined) return !("const" in others) && !("enum" in others) && !("allOf" in others);
  return [type].flat().includes("null");
}

function orNull({ description, default: value, examples, ...schema }: JsonSchema): JsonSchema {
  const forms = Object.keys(schema).join() === "anyOf" ? (schema.anyOf as readonly JsonSchema[]) : [schema];
  return {
    ...(description !== undefined && { description }),
    ...(value !== undefined && { default: value }),
    ...(examples !== undefined && { examples }),
    anyOf: [...forms, { type: "null" }],
  };
}

const isAny = (schema: object): boolean => Object.keys(schema).length === 0;

const LOCAL = "#/$defs/";
/** A schema without a name that is used twice: it is written out where it is used. */
const NAMELESS = "__schema";

function relink(
  schema: JsonSchema,
  names: ReadonlyMap<string, string>,
  $defs: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    if (typeof value?.$ref !== "string" || !value.$ref.startsWith(LOCAL)) return value;
    const { $ref, ...rest } = value;
    const id = $ref.slice(LOCAL.length);
    const nameless = id.startsWith(NAMELESS) ? $defs[id] : undefined;
    if (nameless) return { ...relink(nameless, names, $defs), ...rest };
    return { $ref: `#/components/schemas/${names.get(id) ?? id}`, ...rest };
  });
}
