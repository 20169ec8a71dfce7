import { z } from "zod";

/** A JSON Schema in the OpenAPI document. OpenAPI 3.1 uses draft 2020-12. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Converts Zod schemas to JSON Schemas. A schema whose metadata has an `id` becomes a component. */
export interface SchemaWriter {
  /** Converts a request schema. For a body, optional fields also accept null; for a patch, only nullable fields accept null. */
  readonly input: (schema: z.ZodType, as?: "body" | "patch") => JsonSchema;
  readonly output: (schema: z.ZodType) => JsonSchema;
  readonly components: () => Readonly<Record<string, JsonSchema>>;
}

type Mutable = Record<string, unknown>;

export function createSchemaWriter(): SchemaWriter {
  const components = new Map<string, JsonSchema>();
  type Way = "input" | "body" | "patch" | "output";
  const written = new Map<Way, Map<z.ZodType, JsonSchema>>();

  /** Converts each schema once for requests and once for responses, because many operations share schemas. */
  function writeCached(schema: z.ZodType, way: Way): JsonSchema {
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
      .filter(([id]) => !id.startsWith(UNNAMED_PREFIX))
      .map(([id, one]) => [id, nullable(one)] as const);
    const names = new Map(named.map(([id, one]) => [id, nameOf(id, one, io)] as const));
    const relinked = (part: JsonSchema): JsonSchema => relink(part, names, $defs);
    for (const [id, one] of named) components.set(names.get(id) ?? id, relinked(one));
    const isBody = way === "body" || way === "patch";
    return relinked(isBody ? nullable(properties.root, way === "patch") : properties.root);
  }

  /**
   * Returns the component's name. A request schema that differs from the response schema, for example by defaults, gets the suffix `Input`.
   */
  function nameOf(id: string, schema: JsonSchema, io: "input" | "output"): string {
    if (io === "output") return id;
    const answered = components.get(id);
    if (!answered) return id;
    return JSON.stringify(answered) === JSON.stringify(relink(schema, new Map(), {})) ? id : `${id}Input`;
  }

  return {
    input: (schema, as) => writeCached(schema, as ?? "input"),
    output: (schema) => writeCached(schema, "output"),
    components: () => Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/**
 * Adjusts a converted schema in place. `shown` in the metadata replaces schemas that JSON Schema cannot express, such
 * as a number sent as text. Responses allow extra properties, because later versions may add fields. Patterns that only
 * repeat a format are removed.
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
  // The empty schema accepts any value. An `anyOf` that contains the empty schema is therefore redundant.
  if (Array.isArray(schema.anyOf) && schema.anyOf.some(isAny)) delete schema.anyOf;
  // Zod sets `readOnly` for TypeScript's `readonly`, but in OpenAPI `readOnly` forbids clients to send the field.
  delete schema.readOnly;
  if (io === "output" && schema.additionalProperties === false) delete schema.additionalProperties;
  if (typeof schema.format === "string") delete schema.pattern;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
}

type Definitions = Readonly<Record<string, JsonSchema>>;

/** Makes optional fields accept null. In a patch, this applies only inside arrays, because null elsewhere clears a field. */
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
      const isOptional = !isPatch && !(required as readonly string[]).includes(name);
      return [name, withInnerDefault(isOptional && !takesNull(field, defs) ? orNull(field) : field)];
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

/**
 * Moves the default of a request's field into the forms of its value. Generators of clients, such as `openapi-typescript`, otherwise
 * require each field with a default.
 */
function withInnerDefault({ description, default: value, examples, ...schema }: JsonSchema): JsonSchema {
  const about = {
    ...(description !== undefined && { description }),
    ...(examples !== undefined && { examples }),
  };
  if (value === undefined) return { ...about, ...schema };
  const forms = Object.keys(schema).join() === "anyOf" ? (schema.anyOf as readonly JsonSchema[]) : [schema];
  const nulls = forms.filter((one) => one.type === "null");
  const [form, ...others] = forms.filter((one) => one.type !== "null");
  const inner = others.length === 0 ? form : { anyOf: [form, ...others] };
  // A field of any JSON has no default here, because code generators write no type for a schema that has only a default.
  if (value === null && inner !== undefined && isAny(inner)) return about;
  if (nulls.length === 0) return { ...about, allOf: [{ ...inner, default: value }] };
  return value === null
    ? { ...about, anyOf: [inner, { type: "null", default: null }] }
    : { ...about, anyOf: [{ ...inner, default: value }, { type: "null" }] };
}

const isAny = (schema: object): boolean => Object.keys(schema).length === 0;

const LOCAL = "#/$defs/";
/** Name prefix of schemas that Zod moves to `$defs` because they occur twice. This code inlines them again. */
const UNNAMED_PREFIX = "__schema";

function relink(
  schema: JsonSchema,
  names: ReadonlyMap<string, string>,
  $defs: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    if (typeof value?.$ref !== "string" || !value.$ref.startsWith(LOCAL)) return value;
    const { $ref, ...rest } = value;
    const id = $ref.slice(LOCAL.length);
    const unnamed = id.startsWith(UNNAMED_PREFIX) ? $defs[id] : undefined;
    if (unnamed) return { ...relink(unnamed, names, $defs), ...rest };
    return { $ref: `#/components/schemas/${names.get(id) ?? id}`, ...rest };
  });
}
