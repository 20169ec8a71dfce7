import SwaggerParser from "@apidevtools/swagger-parser";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";
import { createDocumentCheck, type OpenApi, operationsOf } from "../support/documented.ts";

let api: TestApi;
let document: OpenApi;
beforeAll(async () => {
  api = await createTestApi();
  document = await (await api.app.request("/v1/openapi.json")).json();
});
afterAll(() => api[Symbol.asyncDispose]());

const everyOperation = () =>
  Object.entries<OpenApi>(document.paths).flatMap(([path, item]) =>
    Object.entries<OpenApi>(item)
      .filter(([method]) => method !== "servers")
      .map(([method, operation]) => ({ path, method, operation })),
  );

describe("the document", () => {
  it("is valid OpenAPI 3.1, and its references lead somewhere", async () => {
    expect(document.openapi).toMatch(/^3\.1\./);
    await SwaggerParser.validate(structuredClone(document));
  });

  it("is read without a token, and says so", async () => {
    expect(document.paths["/openapi.json"].get.security).toEqual([]);
    expect(document.security).toEqual([{ bearer: [] }]);
  });

  it("names every operation once", () => {
    const names = everyOperation().map(({ operation }) => operation.operationId);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    for (const { operation } of everyOperation()) {
      expect(operation.operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
      expect(operation.tags).toHaveLength(1);
    }
  });

  it("says of every operation which errors it has and what it needs", () => {
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

  it("gives examples that its own schemas allow", () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema(document, "document");
    const findings: string[] = [];
    let count = 0;
    for (const { path, method, operation } of everyOperation()) {
      const bodies = [["request", operation.requestBody], ...Object.entries<OpenApi>(operation.responses)];
      for (const [name, body] of bodies) {
        const media = body?.content?.["application/json"];
        if (!media) continue;
        const valid = ajv.compile(relinked(media.schema));
        count++;
        if (!valid(media.example))
          findings.push(`${method} ${path} ${name}: ${ajv.errorsText(valid.errors)}`);
      }
      for (const { schema } of operation.parameters?.filter((one: OpenApi) => one.schema?.examples) ?? []) {
        count++;
        if (!ajv.validate(relinked(schema), schema.examples[0])) findings.push(`${path}: ${schema.examples}`);
      }
    }
    expect(findings).toEqual([]);
    expect(count).toBeGreaterThan(50);
  });

  const relinked = (schema: OpenApi): OpenApi =>
    JSON.parse(JSON.stringify(schema), (key, value) => (key === "$ref" ? `document${value}` : value));
});

describe("document and router", () => {
  it("know the same routes", () => {
    const mounted = new Set(
      api.app.routes
        .filter(({ method, path }) => method !== "ALL" && path.startsWith("/v1/"))
        .map(({ method, path }) => `${method} ${documented(path)}`),
    );
    const described = operationsOf(document).map(({ method, path }) => `${method.toUpperCase()} /v1${path}`);
    expect([...mounted].sort()).toEqual([...described].sort());
  });

  /** `{topic}/{entryId}` is matched as one. */
  const documented = (path: string): string =>
    path.replace(/:place\{.*\}$/, "{topic}/{entryId}").replace(/:(\w+)/g, "{$1}");

  it("lead every documented operation to its route", async () => {
    for (const { path, method } of operationsOf(document)) {
      const parameters: OpenApi[] = document.paths[path][method].parameters;
      const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
        const example = parameters.find((one) => one.name === name).schema.examples[0];
        return encodeURIComponent(example);
      });
      const { status, body } = await api.call(method.toUpperCase(), filled);
      expect([status, body.message], `${method} ${path}`).not.toEqual([404, "There is no such resource."]);
      expect(status, `${method} ${path}`).not.toBe(405);
    }
  });
});

describe("the check of every test's answers", () => {
  const check = (part: object) =>
    createDocumentCheck(document)({
      ...{ method: "GET", path: "/blueprints/bp_1", status: 200, text: "{}" },
      headers: new Headers({ "content-type": "application/json" }),
      ...part,
    });

  it("finds a status, a header, a field that is not documented or is missing", async () => {
    expect(check({ status: 418 })).toContain("status");
    expect(check({})).toContain("header");
    const { body } = await api.call("POST", "/blueprints", { title: "a" });
    const { headers } = await api.call("GET", `/blueprints/${body.id}`);
    const { uid, ...rest } = body;
    expect(check({ headers, text: JSON.stringify(body) })).toBeUndefined();
    expect(check({ headers, text: JSON.stringify(rest) })).toContain("uid");
    expect(check({ headers, text: JSON.stringify({ ...body, extra: uid }) })).toContain("additional");
    expect(check({ path: "/nowhere" })).toContain("not documented");
  });
});

it("describes hooks and operations beside the API, each with its own server", () => {
  for (const path of ["/hooks/{channelId}", "/healthz", "/readyz", "/metrics", "/docs"]) {
    expect(document.paths[path].servers).toHaveLength(1);
  }
  expect(document.paths["/hooks/{channelId}"].servers[0].url).toBe("https://hooks.example");
});
