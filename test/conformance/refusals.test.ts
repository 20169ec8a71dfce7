import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";
import type { OpenApi } from "../support/documented.ts";
import { type ApiOperation, follow, pathNames, readOperations } from "./operations.ts";

// Bodies and queries are checked before anything is looked up: no entity is needed, and none is made.
let api: TestApi;
let document: OpenApi;
let operations: readonly ApiOperation[];
beforeAll(async () => {
  api = await createTestApi();
  document = (await api.call("GET", "/openapi.json")).body;
  operations = readOperations(document);
});
afterAll(() => api?.[Symbol.asyncDispose]());

/** Bodies of operations whose example shows fields that exclude each other. */
const BODIES: Readonly<Record<string, object>> = {
  installApp: { blueprintId: "none" },
  createArtifact: { storeId: "none", kind: "blueprint", title: "Example", blueprintId: "none" },
  subscribe: { eventUid: "main:push", handler: { url: "https://example.com/" } },
};
const bodyOf = ({ id, bodyExample }: ApiOperation): OpenApi =>
  structuredClone(BODIES[id] ?? bodyExample ?? {});

const where = ({ method, path }: ApiOperation): string => `${method} ${path}`;
const pathOf = ({ path }: ApiOperation): string =>
  pathNames(path).reduce((text, name) => text.replace(`{${name}}`, "none"), path);

/** An object within a body: the steps to it, and what the document says of it. */
interface Part {
  readonly steps: readonly (string | number)[];
  readonly schema: OpenApi;
}

/** The one form that a value of the schema may have beside null; undefined where there are several. */
function formOf(part: OpenApi): OpenApi {
  const schema = follow(document, part);
  const forms = (schema.anyOf ?? schema.oneOf ?? [schema])
    .map((one: OpenApi) => follow(document, one))
    .filter(({ type }: OpenApi) => type !== "null");
  return forms.length === 1 ? forms[0] : undefined;
}

/** The types that the document allows there; undefined: any. */
function typesOf(part: OpenApi): ReadonlySet<string> | undefined {
  const schema = follow(document, part);
  const variants: OpenApi[] = schema.anyOf ?? schema.oneOf ?? [];
  if (variants.length > 0) {
    const types = variants.map(typesOf);
    return types.some((one) => one === undefined)
      ? undefined
      : new Set(types.flatMap((one) => [...(one ?? [])]));
  }
  if ("const" in schema) return new Set([schema.const === null ? "null" : typeof schema.const]);
  if (schema.enum) return new Set(schema.enum.map((one: unknown) => (one === null ? "null" : typeof one)));
  return schema.type === undefined ? undefined : new Set([schema.type].flat());
}

/** All objects with named fields in an operation's body. */
function partsOf(operation: ApiOperation): readonly Part[] {
  const walk = (schema: OpenApi, value: OpenApi, steps: Part["steps"]): readonly Part[] => {
    const form = formOf(schema);
    if (form === undefined || typeof value !== "object" || value === null) return [];
    if (Array.isArray(value))
      return value.length > 0 && form.items ? walk(form.items, value[0], [...steps, 0]) : [];
    if (!form.properties) return [];
    const nested = Object.entries<OpenApi>(form.properties).flatMap(([name, one]) =>
      walk(one, value[name], [...steps, name]),
    );
    return [{ steps, schema: form }, ...nested];
  };
  return walk(operation.bodySchema, bodyOf(operation), []);
}

/** A value of another type than those; undefined where all are allowed. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  boolean: true,
  integer: 7,
  string: "text",
  array: [],
  object: {},
};
const unfit = (types: ReadonlySet<string>): unknown =>
  Object.entries(SAMPLES).find(
    ([type]) => !types.has(type) && !(type === "integer" && types.has("number")),
  )?.[1];

const dotted = (steps: Part["steps"]): string =>
  steps.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? step : `${text}.${step}`;
  }, "");

/** What a spoilt object must be refused for: the names of its fields. */
type Spoil = (object: OpenApi, schema: OpenApi) => readonly string[];

const spoils: Readonly<Record<string, Spoil>> = {
  "a field that the document does not name": (object) => {
    object.noSuchField = 1;
    return ["noSuchField"];
  },
  "values of types that the document does not allow": (object, schema) =>
    Object.entries<OpenApi>(schema.properties).flatMap(([name, one]) => {
      const types = typesOf(one);
      const value = types && unfit(types);
      if (value === undefined) return [];
      object[name] = value;
      return [name];
    }),
  "null where the document does not allow it": (object, schema) =>
    Object.entries<OpenApi>(schema.properties).flatMap(([name, one]) => {
      const types = typesOf(one);
      if (types === undefined || types.has("null")) return [];
      object[name] = null;
      return [name];
    }),
  "required fields missing": (object, schema) => {
    for (const name of schema.required ?? []) delete object[name];
    return schema.required ?? [];
  },
};

describe("every operation that takes a body", () => {
  it.each(Object.keys(spoils))("refuses %s, naming each field and no other", async (name) => {
    const findings: string[] = [];
    let fields = 0;
    for (const operation of operations.filter(({ bodySchema }) => bodySchema !== undefined)) {
      for (const { steps, schema } of partsOf(operation)) {
        const body = bodyOf(operation);
        const object = steps.reduce((at: OpenApi, step) => at[step], body);
        const paths = (spoils[name]?.(object, schema) ?? []).map((field) => dotted([...steps, field]));
        if (paths.length === 0) continue;
        const answer = await api.call(operation.method, pathOf(operation), body);
        const told = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        fields += paths.length;
        if (`${answer.body.code} ${told.sort()}` !== `invalid_parameters ${paths.sort()}`)
          findings.push(`${where(operation)} ${dotted(steps)}: ${answer.status} ${told}, not ${paths}`);
      }
    }
    expect(findings).toEqual([]);
    expect(fields).toBeGreaterThan(40);
  });
});

describe("every operation that takes a query", () => {
  it("refuses values of types that the document does not allow, naming the parameter", async () => {
    const findings: string[] = [];
    let parameters = 0;
    for (const operation of operations) {
      const typed = operation.parameters.filter(
        ({ in: place, schema }) =>
          place === "query" && typesOf(schema) && (schema.enum || !typesOf(schema)?.has("string")),
      );
      for (const { name } of typed) {
        parameters++;
        const answer = await api.call(operation.method, `${pathOf(operation)}?${name}=no+such+value`);
        const told = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        if (answer.body.code !== "invalid_parameters" || told.join() !== name)
          findings.push(`${where(operation)}?${name}: ${answer.status} ${told}`);
      }
    }
    expect(findings).toEqual([]);
    expect(parameters).toBeGreaterThan(50);
  });
});
