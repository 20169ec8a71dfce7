import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { channelKinds } from "../../src/channels/kinds.ts";
import { describeApi } from "../../src/resources/resources.ts";
import { readPresets } from "../../src/verify/presets.ts";

type Schema = Readonly<Record<string, unknown>>;

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header" | "cookie";
  readonly required?: boolean;
  readonly schema: Schema;
}

interface Body {
  readonly required?: boolean;
  readonly content: Readonly<Record<string, { readonly schema?: Schema }>>;
}

interface Operation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: Body;
  readonly responses: Readonly<Record<string, Partial<Body> & { readonly $ref?: string }>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, Partial<Body>>>;
  };
}

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"] as const;
const OUT = new URL("../../src/console/generated/api.d.ts", import.meta.url).pathname;

/** Returns TypeScript declarations of the API's paths and schemas. */
export function renderApiTypes({ paths, components }: Document): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `    ${name}: ${typeOf(schema)};`,
  );
  const places = Object.entries(paths).map(
    ([path, operations]) =>
      `  ${JSON.stringify(path)}: {\n    parameters: { query?: never; header?: never; path?: never; cookie?: never };\n${METHODS.map(
        (method) => `    ${renderMethod(method, operations[method])}`,
      ).join("\n")}\n  };`,
  );
  return `// Generated from the OpenAPI document by config/console/api-types.ts. Not committed.\ndeclare namespace InletApi {\ninterface paths {\n${places.join("\n")}\n}\ninterface components {\n  schemas: {\n${schemas.join("\n")}\n  };\n}\n}\n`;

  function renderMethod(method: string, operation: Operation | undefined): string {
    if (operation === undefined) return `${method}?: never;`;
    const parameters = (operation.parameters ?? []).map((one) =>
      "$ref" in one ? named(components.parameters, one.$ref) : one,
    );
    const body = operation.requestBody;
    const answers = Object.entries(operation.responses).map(([status, answer]) => {
      const { content } = answer.$ref === undefined ? answer : named(components.responses, answer.$ref);
      return `${status}: { headers: { [name: string]: unknown }; ${renderContent(content)} };`;
    });
    return `${method}: {
      parameters: { ${(["query", "header", "path", "cookie"] as const).map((place) => renderParameters(place, parameters)).join(" ")} };
      ${body === undefined ? "requestBody?: never" : `requestBody${body.required === true ? "" : "?"}: { ${renderContent(body.content)} }`};
      responses: { ${answers.join(" ")} };
    };`;
  }
}

function renderParameters(place: Parameter["in"], all: readonly Parameter[]): string {
  const here = all.filter((one) => one.in === place);
  if (here.length === 0) return `${place}?: never;`;
  const isOptional = here.every(({ required }) => required !== true);
  const fields = here.map(
    ({ name, required, schema }) =>
      `${JSON.stringify(name)}${required === true ? "" : "?"}: ${typeOf(schema)};`,
  );
  return `${place}${isOptional ? "?" : ""}: { ${fields.join(" ")} };`;
}

const renderContent = (content: Body["content"] | undefined): string =>
  content === undefined
    ? "content?: never;"
    : `content: { ${Object.entries(content)
        .map(([type, { schema }]) => `${JSON.stringify(type)}: ${typeOf(schema ?? {})};`)
        .join(" ")} };`;

/** Supports only the JSON Schema keywords that this API uses. A schema with an unsupported type becomes `unknown`. */
function typeOf(schema: Schema): string {
  const { $ref, enum: values, anyOf, oneOf, allOf, type } = schema;
  if (typeof $ref === "string") return `components["schemas"][${JSON.stringify($ref.split("/").at(-1))}]`;
  if ("const" in schema) return JSON.stringify(schema.const);
  if (Array.isArray(values)) return union(values.map((value) => JSON.stringify(value)));
  for (const variants of [anyOf, oneOf]) if (Array.isArray(variants)) return union(variants.map(typeOf));
  if (Array.isArray(allOf)) return allOf.map((part) => `(${typeOf(part)})`).join(" & ");
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...schema, type: one })));
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type;
    case "integer":
    case "number":
      return "number";
    case "array":
      if (Array.isArray(schema.prefixItems)) return `[${schema.prefixItems.map(typeOf).join(", ")}]`;
      return `(${typeOf((schema.items as Schema | undefined) ?? {})})[]`;
    case "object":
      return objectType(schema);
    default:
      return "unknown";
  }
}

function objectType({ properties, required, additionalProperties }: Schema): string {
  const needed = Array.isArray(required) ? required : [];
  const fields = Object.entries((properties ?? {}) as Readonly<Record<string, Schema>>).map(
    ([name, schema]) => `${JSON.stringify(name)}${needed.includes(name) ? "" : "?"}: ${typeOf(schema)};`,
  );
  if (fields.length > 0) return `{ ${fields.join(" ")} }`;
  if (additionalProperties === false) return "Record<string, never>";
  const others =
    typeof additionalProperties === "object" ? typeOf(additionalProperties as Schema) : "unknown";
  return `{ readonly [name: string]: ${others} }`;
}

const union = (types: readonly string[]): string =>
  [...new Set(types)].map((one) => `(${one})`).join(" | ") || "never";

function named<T>(all: Readonly<Record<string, T>>, $ref: string): T {
  const found = all[$ref.split("/").at(-1) ?? ""];
  if (found === undefined) throw new Error(`The OpenAPI document has no ${$ref}.`);
  return found;
}

/** Skips the write if the types have not changed, so that file watchers are not triggered. */
export function writeApiTypes(): void {
  const presets = readPresets();
  const facts = { channelKinds, presets, sipProviders: ["a", "b", "c"], hooksUrl: "https://gateway.example" };
  const text = renderApiTypes(describeApi(facts) as unknown as Document);
  const before = ((): string | undefined => {
    try {
      return readFileSync(OUT, "utf8");
    } catch {
      return undefined;
    }
  })();
  if (before === text) return;
  mkdirSync(dirname(OUT), { recursive: true });
  writeFileSync(OUT, text);
}

if (import.meta.main) writeApiTypes();
