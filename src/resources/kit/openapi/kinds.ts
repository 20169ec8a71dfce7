import type { ChannelKind, ChannelKinds } from "../../../channels/kind.ts";
import type { JsonSchema, SchemaWriter } from "./schemas.ts";

type Components = Readonly<Record<string, JsonSchema>>;

const KIND_NAME = "ChannelKindName";
const REFERENCE = "#/components/schemas/";

/**
 * Variants of the schema of a channel's config: in responses, requests and blueprints. Each variant has its own component
 * name suffix and treatment of secrets.
 */
const CONFIGS = {
  answered: { io: "output", suffix: "", secrets: "absent" },
  written: { io: "input", suffix: "Input", secrets: "writeOnly" },
  /** Config in the body that creates a blueprint. It must not contain secrets, and no settings of one installation. */
  copied: { io: "input", suffix: "BlueprintInput", secrets: "absent" },
} as const;
type ConfigOf = keyof typeof CONFIGS;

/**
 * Adds the channel kinds of this gateway to the components.
 *
 * A component with `kind` and `config` becomes a union with one variant per kind, so that clients see the config of the
 * kind they choose. `configOf` in the meta of the component selects the entry of `CONFIGS`.
 */
export function withKinds(components: Components, kinds: ChannelKinds, schemas: SchemaWriter): Components {
  const configs = configComponents(kinds, schemas);
  const unions = Object.entries(components).flatMap(([name, component]) =>
    isPlace(component.configOf) ? unionByKind(name, component, component.configOf, kinds) : [],
  );
  // Get the components again, because writing the configs above has added further ones.
  const all = { ...schemas.components(), ...configs, ...Object.fromEntries(unions) };
  all[KIND_NAME] = { ...all[KIND_NAME], enum: [...kinds.keys()] };
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const isPlace = (value: unknown): value is ConfigOf => typeof value === "string" && value in CONFIGS;

function unionByKind(
  name: string,
  { properties, required, configOf: _, examples, ...rest }: JsonSchema,
  place: ConfigOf,
  kinds: ChannelKinds,
): readonly (readonly [string, JsonSchema])[] {
  const names = strings(required);
  const variants = [...kinds].map(([kind, documented]) => {
    const { configSchema } = documented;
    const needed = names.includes("config") || !configSchema.safeParse({}).success;
    const config = { $ref: REFERENCE + configName(kind, documented, place) };
    return {
      kind,
      name: pascalCase(kind) + name,
      schema: {
        ...rest,
        properties: {
          ...(properties as object),
          kind: { type: "string", const: kind },
          config: needed ? config : { anyOf: [{ ...config, default: {} }, { type: "null" }] },
        },
        required: needed ? [...new Set([...names, "config"])] : names,
      },
    };
  });
  const union = {
    description: rest.description,
    ...(examples === undefined ? {} : { examples }),
    oneOf: variants.map((variant) => ({ $ref: REFERENCE + variant.name })),
    discriminator: {
      propertyName: "kind",
      mapping: Object.fromEntries(variants.map((variant) => [variant.kind, REFERENCE + variant.name])),
    },
  };
  return [[name, union], ...variants.map((variant) => [variant.name, variant.schema] as const)];
}

/** Kinds without secret fields use the same component for channels and blueprints. */
const configName = (kind: string, { secretFields }: ChannelKind, place: ConfigOf): string =>
  `${pascalCase(kind)}Config${CONFIGS[secretFields.length === 0 && place === "copied" ? "written" : place].suffix}`;

/**
 * Creates a component for the config of each channel kind. Large fields that occur several times become a component of
 * their own.
 */
function configComponents(kinds: ChannelKinds, schemas: SchemaWriter): Components {
  const all = (Object.keys(CONFIGS) as ConfigOf[]).flatMap((place) =>
    [...kinds].map(([kind, documented]) => {
      const { io, secrets } = CONFIGS[place];
      const adaptSecrets = secrets === "absent" ? without : writeOnly;
      const { configSchema, secretFields, installationFields = [], fromStream } = documented;
      // A channel that reads a stream of a preset is returned with its own settings only, so any setting may be missing.
      const shown = () =>
        fromStream ? withoutDefaults(schemas.input(configSchema)) : schemas.output(configSchema);
      const whole = io === "input" ? schemas.input(configSchema, "body") : shown();
      const schema = adaptSecrets(
        place === "copied" ? without(whole, installationFields) : whole,
        secretFields,
      );
      return { name: configName(kind, documented, place), schema, input: io === "input" ? "Input" : "" };
    }),
  );
  const configs = [...new Map(all.map((one) => [one.name, one])).values()];
  const counts = new Map<string, number>();
  for (const [, part] of configs.flatMap(partsOf)) counts.set(part, (counts.get(part) ?? 0) + 1);
  const names = new Map<string, string>();
  for (const config of configs) {
    for (const [field, part] of partsOf(config)) {
      if ((counts.get(part) ?? 0) < 2 || names.has(part)) continue;
      const common = `Config${pascalCase(field)}${config.input}`;
      const isTaken = [...names.values()].includes(common);
      names.set(part, isTaken ? `${config.name}${pascalCase(field)}` : common);
    }
  }
  const shared = [...names].map(([part, name]) => [name, JSON.parse(part)] as const);
  const own = configs.map(({ name, schema }) => {
    const fields = Object.entries(propertiesOf(schema)).map(([field, one]) => {
      const shortened = names.get(JSON.stringify(one));
      return [field, shortened === undefined ? one : { $ref: REFERENCE + shortened }];
    });
    return [name, { ...schema, properties: Object.fromEntries(fields) }] as const;
  });
  return Object.fromEntries([...shared, ...own]);
}

/** Minimum length of a JSON Schema that becomes a shared component, in characters. Shorter schemas are easier to read inline. */
const MIN_PART_CHARS = 400;

const partsOf = ({ schema }: { readonly schema: JsonSchema }): readonly (readonly [string, string])[] =>
  Object.entries(propertiesOf(schema))
    .map(([field, one]) => [field, JSON.stringify(one)] as const)
    .filter(([, part]) => part.length >= MIN_PART_CHARS && !part.includes('"writeOnly"'));

/** Removes defaults, because generated clients consider members with a default as always present. */
function withoutDefaults(schema: JsonSchema): JsonSchema {
  const { default: _, ...rest } = schema;
  const members = Object.entries(rest).map(([keyword, value]) => {
    if (keyword === "properties")
      return [
        keyword,
        Object.fromEntries(
          Object.entries(propertiesOf(schema)).map(([name, one]) => [name, withoutDefaults(one)]),
        ),
      ];
    if (Array.isArray(value))
      return [keyword, value.map((one) => (isObject(one) ? withoutDefaults(one) : one))];
    return [keyword, isObject(value) && keyword !== "const" ? withoutDefaults(value) : value];
  });
  return Object.fromEntries(members);
}

const without = (schema: JsonSchema, names: readonly string[]): JsonSchema => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(propertiesOf(schema)).filter(([name]) => !names.includes(name)),
  ),
  required: strings(schema.required).filter((name) => !names.includes(name)),
});

const writeOnly = (schema: JsonSchema, names: readonly string[]): JsonSchema => ({
  ...schema,
  properties: Object.fromEntries(
    Object.entries(propertiesOf(schema)).map(([name, one]) => [
      name,
      names.includes(name) ? { ...one, writeOnly: true } : one,
    ]),
  ),
});

const propertiesOf = ({ properties }: JsonSchema): Readonly<Record<string, JsonSchema>> =>
  (isObject(properties) ? properties : {}) as Readonly<Record<string, JsonSchema>>;

const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];

const pascalCase = (name: string): string =>
  name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase());

const isObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);
