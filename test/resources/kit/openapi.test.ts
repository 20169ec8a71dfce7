import { readFileSync } from "node:fs";
import SwaggerParser from "@apidevtools/swagger-parser";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { itDeep } from "../../support/deep-run.ts";
import { createDocumentCheck, type OpenApi, operationsOf } from "../../support/documented.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
let document: OpenApi;
beforeAll(async () => {
  document = await (await api.app.request("/v1/openapi.json")).json();
});

const everyOperation = () =>
  Object.entries<OpenApi>(document.paths).flatMap(([path, item]) =>
    Object.entries<OpenApi>(item)
      .filter(([method]) => method !== "servers")
      .map(([method, operation]) => ({ path, method, operation })),
  );

describe("the OpenAPI document", () => {
  it("is valid OpenAPI 3.1 and has no broken references", async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    await SwaggerParser.validate(structuredClone(document));
  });

  it("can be read without a token, and declares a bearer token for every other operation", async () => {
    expect(document.paths["/openapi.json"].get.security).toEqual([]);
    expect(document.security).toEqual([{ bearer: [] }]);
  });

  it("gives every operation a unique id, a summary and one tag", () => {
    const names = everyOperation().map(({ operation }) => operation.operationId);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    for (const { operation } of everyOperation()) {
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
      expect(operation.tags).toHaveLength(1);
    }
  });

  it("lists the possible errors and the required permission of every operation", () => {
    for (const { path, method } of operationsOf(document)) {
      const operation = document.paths[path][method];
      const errors = Object.keys(operation.responses);
      expect(errors).toEqual(expect.arrayContaining(["200", "429", "500", "503"]));
      if (operation.security === undefined) expect(errors).toContain("401");
      if (operation["x-permission"] !== undefined) {
        expect(errors).toContain("403");
        expect(operation.description).toContain(operation["x-permission"]);
      }
      if (operation.requestBody) expect(errors).toEqual(expect.arrayContaining(["400", "413", "415"]));
      if (path.includes("{")) expect(errors).toContain("404");
    }
  });

  it("describes every tag, and lists the tags about events first", () => {
    const tags: readonly { readonly name: string; readonly description?: string }[] = document.tags;
    const used = new Set(everyOperation().flatMap(({ operation }) => operation.tags));
    expect(new Set(tags.map(({ name }) => name))).toEqual(used);
    expect(tags.slice(0, 4).map(({ name }) => name)).toEqual(["Hooks", "Apps", "Channels", "Subscriptions"]);
    for (const { description } of tags) expect(description).toMatch(/^[A-Z].*[.]$/s);
  });

  it("contains contact and license, and describes each operation and its error responses", () => {
    expect(document.info).toMatchObject({
      contact: { name: expect.any(String) },
      license: { identifier: "Apache-2.0" },
      description: expect.stringMatching(/./),
    });
    const servers = [document, ...Object.values<OpenApi>(document.paths)].flatMap((one) => one.servers ?? []);
    expect(servers.filter(({ url }) => !url || (url.length > 1 && url.endsWith("/")))).toEqual([]);
    for (const { operation } of everyOperation()) {
      expect(operation).toMatchObject({ description: expect.stringMatching(/./) });
      expect(Object.keys(operation.responses).join()).toMatch(/4\d\d/);
    }
  });

  it("refers to each of its components at least once, and names each schema in PascalCase", () => {
    const text = JSON.stringify(document);
    const unused = Object.entries<object>(document.components)
      .filter(([group]) => group !== "securitySchemes")
      .flatMap(([group, parts]) => Object.keys(parts).map((name) => `#/components/${group}/${name}`))
      .filter((pointer) => !text.includes(`"${pointer}"`));
    expect(unused).toEqual([]);
    for (const name of Object.keys(document.components.schemas)) expect(name).toMatch(/^[A-Z][A-Za-z]+$/);
  });

  it("has no union type with a variant that accepts any value", () => {
    const found: unknown[] = [];
    JSON.parse(JSON.stringify(document), (key, value) => {
      if (/^(?:any|one|all)Of$/.test(key) && value.some((one: object) => Object.keys(one).length === 0))
        found.push(value);
      return value;
    });
    expect(found).toEqual([]);
  });

  it.each([
    "Channel",
    "NewChannel",
    "BlueprintChannel",
    "BlueprintChannelInput",
  ])("describes the settings in the schema %s separately for each channel kind", (name) => {
    const { schemas } = document.components;
    const { discriminator, oneOf } = schemas[name];
    expect(discriminator.propertyName).toBe("kind");
    const kinds: readonly string[] = schemas.ChannelKindName.enum;
    expect(Object.keys(discriminator.mapping)).toEqual(kinds);
    expect(oneOf.map(({ $ref }: OpenApi) => $ref)).toEqual(Object.values(discriminator.mapping));
    for (const kind of kinds) {
      const variant = referred(discriminator.mapping[kind]);
      const { $ref, anyOf } = variant.properties.config;
      const config = referred($ref ?? anyOf[0].$ref);
      expect(variant.properties.kind).toMatchObject({ const: kind });
      expect(config.properties).toHaveProperty("retention");
      expect("url" in config.properties).toBe(kind === "sse");
      const push = kind === "webhook" || kind === "cloudevents";
      expect(config.properties.secrets?.writeOnly).toBe(push && name === "NewChannel" ? true : undefined);
    }
  });

  const referred = (pointer: string): OpenApi =>
    pointer
      .slice(2)
      .split("/")
      .reduce((at: OpenApi, step) => at[step], document);

  it("lets client generators see that fields of a request with a default are optional", () => {
    const findings: string[] = [];
    let defaults = 0;
    const visited = new Set<string>();
    function visit(schema: OpenApi, place: string): void {
      if (typeof schema !== "object" || schema === null) return;
      if (typeof schema.$ref === "string" && !visited.has(schema.$ref)) {
        visited.add(schema.$ref);
        visit(referred(schema.$ref), schema.$ref);
      }
      if ("default" in schema) defaults++;
      for (const [name, field] of Object.entries<OpenApi>(schema.properties ?? {})) {
        const isRequired = schema.required?.includes(name) === true;
        if ("default" in field && !isRequired) findings.push(`${place}: ${name}`);
      }
      for (const part of Object.values<OpenApi>(schema)) visit(part, place);
    }
    for (const { path, method, operation } of everyOperation())
      visit(operation.requestBody, `${method} ${path}`);
    expect(findings).toEqual([]);
    expect(defaults).toBeGreaterThan(50);
  });

  it("lists all headers of every response", () => {
    const limits = ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"];
    for (const { path, operation } of everyOperation()) {
      const inApi = document.paths[path].servers === undefined;
      for (const [status, answer] of Object.entries<OpenApi>(operation.responses)) {
        const { headers } = answer.$ref ? referred(answer.$ref) : answer;
        const expected = ["X-Request-Id", ...(inApi ? limits : [])];
        if (status === "429" || (status === "503" && path !== "/readyz")) expected.push("Retry-After");
        if (status === "405") expected.push("Allow");
        expect([operation.operationId, status, Object.keys(headers)]).toEqual([
          ...[operation.operationId, status],
          expect.arrayContaining(expected),
        ]);
      }
    }
  });

  itDeep("contains only examples that match their schemas", () => {
    const ajv = new Ajv2020({
      strict: false,
      allErrors: true,
      inlineRefs: false,
      code: { optimize: false },
    });
    addFormats.default(ajv);
    ajv.addSchema(document, "document");
    const compiled = new Map<string, ValidateFunction>();
    const compile = (schema: OpenApi): ValidateFunction => {
      const text = JSON.stringify(schema);
      const valid = compiled.get(text) ?? ajv.compile(relinked(schema));
      compiled.set(text, valid);
      return valid;
    };
    const findings: string[] = [];
    let count = 0;
    for (const { path, method, operation } of everyOperation()) {
      const bodies = [["request", operation.requestBody], ...Object.entries<OpenApi>(operation.responses)];
      for (const [name, body] of bodies) {
        const media = body?.content?.["application/json"];
        if (!media) continue;
        const valid = compile(media.schema);
        count++;
        if (!valid(media.example))
          findings.push(`${method} ${path} ${name}: ${ajv.errorsText(valid.errors)}`);
      }
    }
    // Checks the examples of parameters, headers and each part of a schema.
    JSON.parse(JSON.stringify(document), (_, part) => {
      const examples: readonly unknown[] = part?.schema && "example" in part ? [part.example] : [];
      const inside: readonly unknown[] = Array.isArray(part?.examples) ? part.examples : [];
      for (const [schema, example] of [
        ...examples.map((one) => [part.schema, one] as const),
        ...inside.map((one) => [part, one] as const),
      ]) {
        count++;
        if (!compile(schema)(example)) findings.push(`${JSON.stringify(schema).slice(0, 300)}: ${example}`);
      }
      return part;
    });
    expect(findings).toEqual([]);
    expect(count).toBeGreaterThan(1_000);
  });

  const relinked = (schema: OpenApi): OpenApi =>
    JSON.parse(JSON.stringify(schema), (key, value) => (key === "$ref" ? `document${value}` : value));
});

describe("the OpenAPI document and the router", () => {
  it("contain the same routes", () => {
    const mounted = new Set(
      api.app.routes
        .filter(({ method, path }) => method !== "ALL" && path.startsWith("/v1/"))
        .map(({ method, path }) => `${method} ${documented(path)}`),
    );
    const described = operationsOf(document).map(({ method, path }) => `${method.toUpperCase()} /v1${path}`);
    expect([...mounted].sort()).toEqual([...described].sort());
  });

  /** Converts a route to a documented path. The router matches `{topic}/{entryId}` as one parameter. */
  const documented = (path: string): string =>
    path.replace(/:place\{.*\}$/, "{topic}/{entryId}").replace(/:(\w+)/g, "{$1}");
});

describe("the check of responses against the OpenAPI document", () => {
  let checked: ReturnType<typeof createDocumentCheck>;
  beforeAll(() => {
    checked = createDocumentCheck(document);
  });
  const check = (part: object) =>
    checked({
      method: "GET",
      path: "/blueprints/bp_1",
      status: 200,
      text: "{}",
      headers: new Headers({ "content-type": "application/json" }),
      ...part,
    });

  it("detects undocumented statuses, paths and fields, and missing headers and fields", async () => {
    expect(check({ status: 418 })).toContain("status");
    expect(check({})).toContain("header");
    const { id } = await api.call.post("/blueprints", { title: "a" });
    const { headers, body } = await api.call("GET", `/blueprints/${id}`);
    const { uid, ...rest } = body;
    expect(check({ headers, text: JSON.stringify(body) })).toBeUndefined();
    expect(check({ headers, text: JSON.stringify(rest) })).toContain("uid");
    expect(check({ headers, text: JSON.stringify({ ...body, extra: uid }) })).toContain("additional");
    expect(check({ path: "/nowhere" })).toContain("not documented");
  });
});

it("the OpenAPI document also describes hooks, health checks, metrics and pages, each with its own server URL", () => {
  for (const path of ["/hooks/{channelId}", "/healthz", "/readyz", "/metrics", "/docs", "/console"]) {
    expect(document.paths[path].servers).toHaveLength(1);
  }
  expect(document.paths["/hooks/{channelId}"].servers[0].url).toBe("https://hooks.example");
});

describe("the API page of the documentation", () => {
  const page = readFileSync(new URL("../../../src/docs/api.md", import.meta.url), "utf8");

  it("lists exactly the paths of the OpenAPI document", () => {
    const listed = [...page.matchAll(/^\| (`\/.*?`) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.replaceAll("\\|", "|").matchAll(/`([^`]+)`/g)].flatMap(([, path = ""]) => expand(path)),
    );
    const paths = new Set(operationsOf(document).map(({ path }) => path));
    expect(listed.sort()).toEqual([...paths].sort());
  });

  it("lists every permission once in its table of permissions", () => {
    const listed = [...page.matchAll(/^\| (`\w+\.(?:read|write)`.*?) \|/gm)].flatMap(([, cell = ""]) =>
      [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
    const required = everyOperation().flatMap(({ operation }) => [
      operation["x-permission"] ?? [],
      operation["x-reveals"] ?? [],
    ]);
    expect(listed.sort()).toEqual([...new Set(required.flat())].sort());
  });
});

/** Expands a pattern like `/a[/b]/(c|d)` to all the paths that it covers. */
function expand(path: string): readonly string[] {
  const optional = /^(.*?)\[([^\]]*)\](.*)$/.exec(path);
  if (optional) {
    const [, before = "", middle = "", after = ""] = optional;
    return [...expand(before + after), ...expand(before + middle + after)];
  }
  const choice = /^(.*?)\(([^)]*)\)(.*)$/.exec(path);
  if (!choice) return [path];
  const [, before = "", choices = "", after = ""] = choice;
  return choices.split("|").flatMap((one) => expand(before + one + after));
}
