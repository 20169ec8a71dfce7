import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";
import { describeDeep } from "../support/deep-run.ts";
import type { OpenApi } from "../support/documented.ts";
import { type ApiOperation, follow, pathNames, readOperations } from "./operations.ts";

// Bodies and queries are checked before any look-up, so these tests need and create no entities.
let api: TestApi;
let document: OpenApi;
let operations: readonly ApiOperation[];
/** The messages of all response details. */
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

/** An object in a body: the steps to it and its schema in the document. */
interface Part {
  readonly steps: readonly (string | number)[];
  readonly schema: OpenApi;
}

/** Returns the only non-null form that this value may have, or `undefined` when there are several. */
function formOf(part: OpenApi, value: OpenApi): OpenApi {
  const schema = follow(document, part);
  const { propertyName, mapping } = schema.discriminator ?? {};
  if (mapping?.[value?.[propertyName]]) return follow(document, { $ref: mapping[value[propertyName]] });
  const forms = (schema.anyOf ?? schema.oneOf ?? schema.allOf ?? [schema])
    .map((one: OpenApi) => follow(document, one))
    .filter(({ type }: OpenApi) => type !== "null");
  return forms.length === 1 ? forms[0] : undefined;
}

/** Returns the types that the document allows, or `undefined` when it allows any. */
function typesOf(part: OpenApi): ReadonlySet<string> | undefined {
  const schema = follow(document, part);
  const variants: OpenApi[] = schema.anyOf ?? schema.oneOf ?? schema.allOf ?? [];
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

/** Returns all objects with named fields in an operation's body. */
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

/** One value of each type, for finding a value whose type is not allowed. */
const SAMPLES: Readonly<Record<string, unknown>> = {
  boolean: true,
  integer: 7,
  string: "text",
  array: [],
  object: {},
};
const findOtherType = (types: ReadonlySet<string>): unknown =>
  Object.entries(SAMPLES).find(
    ([type]) => !types.has(type) && !(type === "integer" && types.has("number")),
  )?.[1];

const dotted = (steps: Part["steps"]): string =>
  steps.reduce<string>((text, step) => {
    if (typeof step === "number") return `${text}[${step}]`;
    return text === "" ? step : `${text}.${step}`;
  }, "");

/** Makes an object invalid. Returns the fields that the error must name. */
type Mutation = (object: OpenApi, schema: OpenApi) => readonly string[];

const mutations: Readonly<Record<string, Mutation>> = {
  "an undocumented field": (object) => {
    object.noSuchField = 1;
    return ["noSuchField"];
  },
  "values of undocumented types": (object, schema) =>
    Object.entries<OpenApi>(schema.properties).flatMap(([name, one]) => {
      const types = typesOf(one);
      const value = types && findOtherType(types);
      if (value === undefined) return [];
      object[name] = value;
      return [name];
    }),
  "an undocumented null": (object, schema) =>
    Object.entries<OpenApi>(schema.properties).flatMap(([name, one]) => {
      const types = typesOf(one);
      if (types === undefined || types.has("null")) return [];
      object[name] = null;
      return [name];
    }),
  "a body without its required fields": (object, schema) => {
    for (const name of schema.required ?? []) delete object[name];
    return schema.required ?? [];
  },
};

describe("every API operation with a request body", () => {
  it.each(Object.keys(mutations))("rejects %s, and reports exactly the invalid fields", async (name) => {
    const findings: string[] = [];
    let fields = 0;
    for (const operation of operations.filter(({ bodySchema }) => bodySchema !== undefined)) {
      for (const { steps, schema } of partsOf(operation)) {
        const body = bodyOf(operation);
        const object = steps.reduce((at: OpenApi, step) => at[step], body);
        const paths = (mutations[name]?.(object, schema) ?? []).map((field) => dotted([...steps, field]));
        if (paths.length === 0) continue;
        const answer = await api.call(operation.method, pathOf(operation), body);
        const reported = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        fields += paths.length;
        if (`${answer.body.code} ${reported.sort()}` !== `invalid_parameters ${paths.sort()}`)
          findings.push(`${where(operation)} ${dotted(steps)}: ${answer.status} ${reported}, not ${paths}`);
      }
    }
    expect(findings).toEqual([]);
    expect(fields).toBeGreaterThan(40);
  });
});

describe("an optional field of a request body", () => {
  it("may be null in every method except PUT, with the same effect as an absent field", async () => {
    const findings: string[] = [];
    let fields = 0;
    const withBody = operations.filter(
      ({ method, bodySchema }) => method !== "PUT" && bodySchema !== undefined,
    );
    for (const operation of withBody) {
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

  it("may be null in a PUT only if the response may contain null for that field", () => {
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

/** The provider that redirects a person here may add any parameters. */
const TAKES_ANY_QUERY = "finishConnectionAuthorization";

describe("every API operation", () => {
  it("rejects an undocumented query parameter, and a parameter that occurs twice, and names the parameter", async () => {
    const findings: string[] = [];
    for (const operation of operations.filter(({ id }) => id !== TAKES_ANY_QUERY)) {
      const known = operation.parameters.filter(({ in: place }) => place === "query");
      for (const name of ["noSuchParameter", ...known.map(({ name }) => name)]) {
        const search = name === "noSuchParameter" ? `${name}=1` : `${name}=1&${name}=1`;
        const answer = await api.call(operation.method, `${pathOf(operation)}?${search}`);
        const reported = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        if (answer.body.code !== "invalid_parameters" || reported.join() !== name)
          findings.push(`${where(operation)}?${search}: ${answer.status} ${reported}`);
      }
    }
    expect(findings).toEqual([]);
    expect(operations.length).toBeGreaterThan(150);
  });
});

describe("every API operation with query parameters", () => {
  it("rejects a parameter with a value of the wrong type, and names the parameter", async () => {
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
        const reported = (answer.body.details ?? []).map(({ path }: { readonly path: string }) => path);
        if (answer.body.code !== "invalid_parameters" || reported.join() !== name)
          findings.push(`${where(operation)}?${name}: ${answer.status} ${reported}`);
      }
    }
    expect(findings).toEqual([]);
    expect(parameters).toBeGreaterThan(50);
  });
});

/** Values that violate bounds, formats and enumerations. */
const ODD = ["", "?", "x".repeat(100_000), -1e15, 1e15, 1.5, true, [], [null], ["", ""], {}, { "": null }];

describeDeep("an error response", () => {
  it("is worded by Inlet and never passes on a message of the validation library", async () => {
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
    // Quoted values are those of the API.
    const isForeign = (message: string) => foreign.test(message.replaceAll(/"[^"]*"/g, ""));
    expect([...messages].filter(isForeign)).toEqual([]);
    expect(messages.size).toBeGreaterThan(30);
  });
});
