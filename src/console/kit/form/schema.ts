/** A JSON Schema from the API's OpenAPI document. */
export type Schema = Readonly<Record<string, unknown>>;

/** Finds the schema that a `$ref` names. */
export type Resolve = (ref: string) => Schema | undefined;

interface Common {
  /** Label of the field. `undefined` if its name serves as the label. */
  readonly title: string | undefined;
  readonly description: string | undefined;
  /** The API's default value. */
  readonly fallback: unknown;
}

export interface ObjectField extends Common {
  readonly is: "object";
  readonly properties: readonly {
    readonly name: string;
    readonly isRequired: boolean;
    readonly schema: Schema;
  }[];
}

export type Field =
  | (Common & {
      readonly is: "text";
      readonly isSecret: boolean;
      readonly isTime: boolean;
      readonly isLong: boolean;
      readonly maxLength: number | undefined;
      readonly example: string | undefined;
    })
  | (Common & {
      readonly is: "number";
      readonly isWhole: boolean;
      readonly min: number | undefined;
      readonly max: number | undefined;
    })
  | (Common & { readonly is: "flag" })
  | (Common & { readonly is: "choice"; readonly options: readonly unknown[] })
  | (Common & { readonly is: "fixed"; readonly value: unknown })
  | ObjectField
  | (Common & { readonly is: "list"; readonly items: Schema })
  | (Common & { readonly is: "record"; readonly values: Schema })
  /** Value that has one of several object types. `by` names the property that tells the types apart. */
  | (Common & { readonly is: "variants"; readonly by: string; readonly variants: readonly Variant[] })
  | (Common & { readonly is: "json" });

export interface Variant {
  readonly name: string;
  readonly schema: Schema;
}

/** Converts a JSON Schema to a form field. A schema that no other field supports becomes a JSON text field. */
export function parseField(given: Schema, resolve: Resolve): Field {
  const schema = flatten(given, resolve);
  const common: Common = {
    title: text(schema.title),
    description: text(schema.description),
    fallback: schema.default,
  };
  if ("const" in schema) return { ...common, is: "fixed", value: schema.const };
  if (Array.isArray(schema.enum)) return { ...common, is: "choice", options: schema.enum };
  const unions = [schema.oneOf, schema.anyOf].find(Array.isArray) as readonly Schema[] | undefined;
  if (unions)
    return {
      ...common,
      ...parseUnion(
        unions.map((one) => flatten(one, resolve)),
        resolve,
      ),
    };
  switch (schema.type) {
    case "boolean":
      return { ...common, is: "flag" };
    case "integer":
    case "number":
      return {
        ...common,
        is: "number",
        isWhole: schema.type === "integer",
        min: number(schema.minimum),
        max: number(schema.maximum),
      };
    case "string": {
      const maxLength = number(schema.maxLength);
      return {
        ...common,
        is: "text",
        isSecret: schema.writeOnly === true,
        isTime: schema.format === "date-time",
        isLong: maxLength !== undefined && maxLength > 2_000 && schema.writeOnly !== true,
        maxLength,
        example: text(Array.isArray(schema.examples) ? schema.examples[0] : undefined),
      };
    }
    case "array":
      return isRecord(schema.items)
        ? { ...common, is: "list", items: schema.items }
        : { ...common, is: "json" };
    case "object": {
      const { properties, required, additionalProperties } = schema;
      if (isRecord(properties)) {
        const needed = Array.isArray(required) ? required : [];
        return {
          ...common,
          is: "object",
          properties: Object.entries(properties).flatMap(([name, one]) =>
            isRecord(one) ? [{ name, isRequired: needed.includes(name), schema: one }] : [],
          ),
        };
      }
      return isRecord(additionalProperties) && Object.keys(additionalProperties).length > 0
        ? { ...common, is: "record", values: additionalProperties }
        : { ...common, is: "json" };
    }
    default:
      return { ...common, is: "json" };
  }
}

/** Resolves references, and leaves out `null` alternatives, which an empty field stands for. */
function flatten(given: Schema, resolve: Resolve): Schema {
  let schema = given;
  for (let depth = 0; typeof schema.$ref === "string" && depth < 8; depth++) {
    const { $ref, ...own } = schema;
    schema = { ...resolve($ref as string), ...own };
  }
  if (Array.isArray(schema.type)) {
    const types = schema.type.filter((one) => one !== "null");
    if (types.length === 1) return { ...schema, type: types[0] };
  }
  for (const key of ["anyOf", "oneOf", "allOf"] as const) {
    const variants = schema[key];
    if (!Array.isArray(variants)) continue;
    const others = variants.filter((one) => !(isRecord(one) && one.type === "null"));
    const { [key]: _, ...rest } = schema;
    if (others.length === 1) return flatten({ ...others[0], ...rest }, resolve);
    if (others.length < variants.length) return { ...rest, [key]: others };
  }
  return schema;
}

function parseUnion(
  variants: readonly Schema[],
  resolve: Resolve,
): { readonly is: "json" } | Omit<Extract<Field, { is: "variants" }>, keyof Common> {
  const [first] = variants;
  if (!isRecord(first?.properties)) return { is: "json" };
  for (const by of Object.keys(first.properties)) {
    const named = variants.flatMap((schema): readonly Variant[] => {
      const tag = isRecord(schema.properties) ? schema.properties[by] : undefined;
      if (!isRecord(tag)) return [];
      const flat = flatten(tag, resolve);
      return "const" in flat ? [{ name: String(flat.const), schema }] : [];
    });
    if (named.length === variants.length) return { is: "variants", by, variants: named };
  }
  return { is: "json" };
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
