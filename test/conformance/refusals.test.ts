import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";
import type { OpenApi } from "../support/documented.ts";
import { type ApiOperation, follow, pathNames, readOperations } from "./operations.ts";

// Bodies and queries are checked before anything is looked up: no entity is needed, and none is made.
let api: TestApi;
let document: OpenApi;
let operations: readonly ApiOperation[];
/** Of all details that an answer had. */
const messages = new Set<string>();
beforeAll(async () => {
  const made = await createTestApi();
  const call = async (...request: Parameters<TestApi["call"]>) => {
    const answer = await made.call(...request);
    for (const { message } of answer.body?.details ?? []) messages.add(message);
    return answer;
  };
  api = { ...made, call: Object.assign(call, made.call) };
  document = (await api.call("GET", "/openapi.json")).body;
  operations = readOperations(document);
});
afterAll(() => api?.[Symbol.asyncDispose]());

const bodyOf = ({ bodyExample }: ApiOperation): OpenApi => structuredClone(bodyExample ?? {});

const where = ({ method, path }: ApiOperation): string => `${method} ${path}`;
const pathOf = ({ path }: ApiOperation): string =>
  pathNames(path).reduce((text, name) => text.replace(`{${name}}`, "none"), path);

/** An object within a body: the steps to it, and what the document says of it. */
interface Part {
  readonly steps: readonly (string | number)[];
  readonly schema: OpenApi;
}

/** The one form that this value of the schema may have beside null; undefined where there are several. */
function formOf(part: OpenApi, value: OpenApi): OpenApi {
  const schema = follow(document, part);
  const { propertyName, mapping } = schema.discriminator ?? {};
  if (mapping?.[value?.[propertyName]]) return follow(document, { $ref: mapping[value[propertyName]] });
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
    const form = formOf(schema, value);
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

describe("a field that may be left out", () => {
  it("takes null in every body but a PUT's, and that is as if it were left out", async () => {
    const findings: string[] = [];
    let fields = 0;
    const asking = operations.filter(
      ({ method, bodySchema }) => method !== "PUT" && bodySchema !== undefined,
    );
    for (const operation of asking) {
      for (const { steps, schema } of partsOf(operation)) {
        const optional = Object.entries<OpenApi>(schema.properties).filter(
          ([name]) => !schema.required?.includes(name),
        );
        const answers: string[] = [];
        for (const change of [
          (object: OpenApi, name: string) => delete object[name],
          (object: OpenApi, name: string) => (object[name] = null),
        ]) {
          const body = bodyOf(operation);
          const object = steps.reduce((at: OpenApi, step) => at[step], body);
          for (const [name] of optional) change(object, name);
          const { body: answer } = await api.call(operation.method, pathOf(operation), body);
          answers.push(answer.code === "invalid_parameters" ? JSON.stringify(answer.details) : "fits");
        }
        const refused = optional.filter(([, one]) => typesOf(one)?.has("null") === false);
        fields += optional.length;
        if (answers[0] !== answers[1] || refused.length > 0)
          findings.push(`${where(operation)} ${dotted(steps)}: ${answers.join(" ")}, no null: ${refused}`);
      }
    }
    expect(findings).toEqual([]);
    expect(fields).toBeGreaterThan(150);
  });

  it("takes null in a PUT only where the field of its entity may be null", () => {
    const findings: string[] = [];
    for (const operation of operations.filter(({ method, bodySchema }) => method === "PUT" && bodySchema)) {
      const { content } = document.paths[operation.path].put.responses["200"];
      const { schema, example } = content["application/json"];
      const answer = formOf(schema, example);
      for (const [name, one] of Object.entries<OpenApi>(operation.bodySchema.properties)) {
        const answered = answer.properties[name] && typesOf(answer.properties[name]);
        if (answered && !answered.has("null") && typesOf(one)?.has("null") !== false)
          findings.push(`${where(operation)} ${name}`);
      }
    }
    expect(findings).toEqual([]);
  });
});

/** Those who send others here add what they like. */
const TAKES_ANY_QUERY = "finishConnectionAuthorization";

describe("every operation", () => {
  it("refuses parameters that the document does not name, or that stand twice, naming each", async () => {
    const findings: string[] = [];
    for (const operation of operations.filter(({ id }) => id !== TAKES_ANY_QUERY)) {
      const known = operation.parameters.filter(({ in: place }) => place === "query");
      for (const name of ["noSuchParameter", ...known.map(({ name }) => name)]) {
        const search = name === "noSuchParameter" ? `${name}=1` : `${name}=1&${name}=1`;
        const answer = await api.call(operation.method, `${pathOf(operation)}?${search}`);
        const told = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        if (answer.body.code !== "invalid_parameters" || told.join() !== name)
          findings.push(`${where(operation)}?${search}: ${answer.status} ${told}`);
      }
    }
    expect(findings).toEqual([]);
    expect(operations.length).toBeGreaterThan(150);
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

/** Values that break bounds, formats and lists of values. */
const ODD = ["", "?", "x".repeat(100_000), -1e15, 1e15, 1.5, true, [], [null], ["", ""], {}, { "": null }];

describe("a refusal", () => {
  it("speaks in words of its own, never in those of the library that checks", async () => {
    for (const operation of operations.filter(({ bodySchema }) => bodySchema !== undefined)) {
      for (const { steps, schema } of partsOf(operation)) {
        for (const value of ODD) {
          const body = bodyOf(operation);
          const object = steps.reduce((at: OpenApi, step) => at[step], body);
          for (const name of Object.keys(schema.properties)) object[name] = value;
          await api.call(operation.method, pathOf(operation), body);
        }
      }
    }
    const foreign =
      /\b(?:invalid|too (?:big|small)|unrecognized|expected|received|undefined|nonoptional|NaN)\b/i;
    expect([...messages].filter((message) => foreign.test(message))).toEqual([]);
    expect(messages.size).toBeGreaterThan(30);
  });
});
