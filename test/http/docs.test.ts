import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { createDocs } from "../../src/http/docs.ts";

const docs = createDocs();

it("the docs page and every file that it names are served with their media types", async () => {
  const page = await docs.request("/docs");
  const html = await page.text();
  const named = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address = ""]) => address);
  expect(named).toHaveLength(4);
  for (const address of named) {
    expect(address).toMatch(/^docs\//);
    const { status, headers } = await docs.request(`/${address}`);
    expect([status, headers.get("x-content-type-options")]).toEqual([200, "nosniff"]);
    expect(headers.get("content-type")).toMatch(/^(text\/css|text\/javascript|image\/png)/);
  }
});

it("the docs page allows no inline script and nothing from other hosts", async () => {
  const page = await docs.request("/docs");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(await page.text()).not.toMatch(/<script(?![^>]*src=)|\son\w+=|https?:/);
});

it("the docs page hands over the heads of operations, and the whole of one when it is opened", async () => {
  const script = await (await docs.request("/docs/start.js")).text();
  // biome-ignore lint/suspicious/noExplicitAny: what a page of somebody else's is handed
  let options: any;
  const window = {
    addEventListener: (_: string, start: () => void) => start(),
    SwaggerUIBundle: Object.assign((given: object) => (options = given), { presets: {} }),
  };
  runInNewContext(script, { window });
  const [heads] = options.plugins;
  const { fn, statePlugins } = heads();
  let handed: unknown;
  const specActions = { updateJsonSpec: (json: unknown) => (handed = json) };
  const head = { operationId: "getTree", summary: "Get a tree", tags: ["Trees"] };
  const schema = { $ref: "#/components/schemas/Tree" };
  const document = {
    openapi: "3.1.1",
    paths: { "/trees/{id}": { get: { ...head, responses: { "200": { schema } } } } },
    components: {
      securitySchemes: {},
      schemas: { Tree: { properties: { name: { type: "string" }, parent: schema } } },
    },
  };
  statePlugins.spec.wrapActions.parseToJson(null, { specActions })(JSON.stringify(document));
  expect(JSON.parse(JSON.stringify(handed))).toEqual({
    openapi: "3.1.1",
    paths: { "/trees/{id}": { get: head } },
    components: { securitySchemes: {} },
  });
  const { spec } = await fn.resolveSubtree(handed, ["paths", "/trees/{id}", "get"]);
  expect(JSON.parse(JSON.stringify(spec.responses["200"].schema))).toEqual({
    properties: { name: { type: "string" }, parent: { description: "As above." } },
  });
});
