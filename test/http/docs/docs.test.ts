import { readdirSync, readFileSync } from "node:fs";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { SETTING_LIST } from "../../../src/config/schema.ts";
import { QUARANTINE_REASONS } from "../../../src/event/outcome.ts";
import { createDocs } from "../../../src/http/docs/docs.ts";
import { STATUS_OF } from "../../../src/http/errors.ts";
import { readPresets } from "../../../src/verify/presets.ts";
import {
  renderPresetTable,
  renderRegistrationTable,
  renderStreamTable,
} from "../../support/generated-docs.ts";

const FOLDER = new URL("../../../src/docs/", import.meta.url);
const presets = readPresets();
const docs = createDocs({ presets });
const files = readdirSync(FOLDER).filter((file) => file.endsWith(".md"));
const guides = files.map((file) => (file === "index.md" ? "/docs" : `/docs/${file.replace(/\.md$/, "")}`));
const ofPresets = [...presets.keys()].map((name) => `/docs/presets/${name}`);
const textOf = async (path: string): Promise<string> => (await docs.request(path)).text();

describe("each documentation page", () => {
  it("is served, and links only to existing pages and anchors", async () => {
    const served = new Map<string, string>();
    const load = async (path: string): Promise<string> => {
      const answer = await docs.request(path);
      const text = answer.status === 200 ? await answer.text() : "";
      served.set(path, text);
      return text;
    };
    const broken: string[] = [];
    for (const page of [...guides, ...ofPresets, "/docs/reference", "/docs/search?q=schema"]) {
      const html = served.get(page) ?? (await load(page));
      expect(html, page).not.toBe("");
      for (const [, address = ""] of html.matchAll(/(?:src|href|action)="([^"]*)"/g)) {
        const { origin, pathname, hash } = new URL(address, `http://docs${page}`);
        if (origin !== "http://docs" || pathname === "/console") continue;
        const target = served.get(pathname) ?? (await load(pathname));
        const id = decodeURIComponent(hash.slice(1));
        if (target === "" || (id !== "" && !target.includes(`id="${id}"`)))
          broken.push(`${page}: ${address}`);
      }
    }
    expect(broken).toEqual([]);
    expect(served.size).toBeGreaterThan(files.length + presets.size);
  });

  it("allows neither inline scripts nor resources from other hosts", async () => {
    for (const page of ["/docs", "/docs/reference", "/docs/presets/stripe", "/docs/search?q=x"]) {
      const answer = await docs.request(page);
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(await answer.text()).not.toMatch(/<script(?![^>]*src=)|<style|\s(?:style|on\w+)=|src="https?:/);
    }
  });

  it("shows no front matter", async () => {
    for (const page of [...guides, "/docs/index.md", "/docs/settings.md", "/llms.txt"])
      expect(await textOf(page), page).not.toMatch(/kind: (?:tutorial|how-to|reference|explanation)/);
  });

  it("is listed on the start page of the documentation", async () => {
    const index = await textOf("/docs");
    const listed = [...index.matchAll(/<li><a href="(docs\/[\w-]+)"/g)].map(([, path]) => `/${path}`);
    expect([...new Set(listed)].sort()).toEqual(guides.filter((path) => path !== "/docs").sort());
  });
});

describe("the documentation for agents", () => {
  const linksIn = (text: string): readonly string[] =>
    [...text.matchAll(/\]\(((?!https?:|#)[^)\s]+)\)/g)].map(([, href = ""]) => href);

  it("lists each page and each provider in llms.txt, and serves all of them as Markdown with working links", async () => {
    const list = await docs.request("/llms.txt");
    expect(list.headers.get("content-type")).toMatch(/^text\/plain/);
    const listed = linksIn(await list.text());
    const expected = [
      ...files.filter((file) => file !== "index.md").map((file) => `docs/${file}`),
      ...[...presets.keys()].map((name) => `docs/presets/${name}.md`),
    ];
    expect(listed.toSorted()).toEqual(expected.toSorted());
    const broken: string[] = [];
    for (const path of ["docs/index.md", ...listed]) {
      const page = await docs.request(`/${path}`);
      expect([path, page.status, page.headers.get("content-type")]).toEqual([
        path,
        200,
        "text/markdown; charset=utf-8",
      ]);
      for (const href of linksIn(await page.text())) {
        const { pathname } = new URL(href, `http://docs/${path}`);
        const leavesDocs = !pathname.startsWith("/docs/");
        if (!leavesDocs && (await docs.request(pathname)).status !== 200) broken.push(`${path}: ${href}`);
      }
    }
    expect(broken).toEqual([]);
  });

  it("is linked from the page that people read", async () => {
    for (const page of ["/docs", "/docs/settings", "/docs/presets/stripe"]) {
      const [, href = ""] =
        /<link rel="alternate" type="text\/markdown" href="([^"]+)"/.exec(await textOf(page)) ?? [];
      const { pathname } = new URL(href, `http://docs${page}`);
      expect((await docs.request(pathname)).status).toBe(200);
    }
  });

  it("has no Markdown for unknown pages", async () => {
    for (const path of ["/docs/none.md", "/docs/presets/none.md"])
      expect((await docs.request(path)).status).toBe(404);
  });
});

it("an unknown documentation page receives 404 with the list of pages", async () => {
  for (const path of ["/docs/none", "/docs/presets/none", "/docs/__proto__"]) {
    const answer = await docs.request(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "text/html; charset=UTF-8"]);
    expect(await answer.text()).toContain("settings");
  }
});

it("the documentation URL with a trailing slash redirects to the start page, even behind a path prefix", async () => {
  const answer = await docs.request("/docs/");
  expect([answer.status, answer.headers.get("location")]).toEqual([302, "../docs"]);
});

it("the documentation page of a provider shows the required secret, the setup steps and the replay protection", async () => {
  const page = (await textOf("/docs/presets/github")).replaceAll("&#39;", "'");
  const { notes, replays, secret } = presets.get("github") ?? {};
  for (const text of [...(notes ?? []), replays, secret?.hint]) expect(page).toContain(text);
});

it("the page of a provider contains the command that sets it up, and a text for an agent", async () => {
  const page = await textOf("/docs/presets/stripe.md");
  expect(page).toContain("npx inlet-gateway receive stripe --secret @secret.txt\n");
  expect(page).toContain(
    "Set up Inlet so that it receives the webhooks of Stripe.\n1. Ask me for this secret",
  );
  expect(await textOf("/docs/presets/strava.md")).not.toContain("--secret");
});

it("no page of a provider runs the unrelated npm package `inlet`", async () => {
  for (const name of presets.keys())
    expect(await textOf(`/docs/presets/${name}.md`), name).not.toMatch(/npx inlet(?!-gateway)/);
});

it("the table in the documentation contains each provider preset", () => {
  const text = readFileSync(new URL("presets.md", FOLDER), "utf8");
  expect(text).toContain(`<!-- presets -->\n${renderPresetTable(presets)}\n<!-- /presets -->`);
});

it("the table in the documentation contains each list that a preset can poll", () => {
  const text = readFileSync(new URL("polling-presets.md", FOLDER), "utf8");
  expect(text).toContain(`<!-- streams -->\n${renderStreamTable(presets)}\n<!-- /streams -->`);
});

it("the table in the documentation contains each registration of a preset", () => {
  const text = readFileSync(new URL("registrations.md", FOLDER), "utf8");
  expect(text).toContain(
    `<!-- registrations -->\n${renderRegistrationTable(presets)}\n<!-- /registrations -->`,
  );
});

describe("documentation search", () => {
  const search = async (words: string): Promise<readonly string[]> => {
    const html = await textOf(`/docs/search?q=${encodeURIComponent(words)}`);
    const [, hits = ""] = html.split('<ol class="hits">');
    return [...hits.matchAll(/<a href="([^"]*)"/g)].map(([, address = ""]) => address);
  };

  it("finds each setting, error code, quarantine reason and provider", async () => {
    for (const { name } of SETTING_LIST) expect(await search(name)).toContain(`../docs/settings#${name}`);
    for (const code of Object.keys(STATUS_OF)) expect(await search(code)).toContain(`../docs/errors#${code}`);
    for (const reason of QUARANTINE_REASONS)
      expect(await search(reason)).toContain(`../docs/quarantine#${reason}`);
    for (const { preset, title } of presets.values()) {
      expect(await search(title)).toContain(`../docs/presets/${preset}`);
    }
  });

  it("ranks guides above provider pages", async () => {
    expect((await search("401"))[0]).toBe("../docs/errors#unauthenticated");
    const [first = ""] = await search("https");
    expect(first).not.toContain("/presets/");
  });

  it("ignores repeated words and all words after the first eight", async () => {
    const eight = "a gateway of events that are sent to";
    expect(await search(`${eight} ${eight} xyzzy plugh`)).toEqual(await search(eight));
    expect((await search(eight)).length).toBeGreaterThan(0);
    expect(await search("a gateway xyzzy")).toEqual([]);
  });

  it("escapes HTML in the search text", async () => {
    const html = await textOf(`/docs/search?q=${encodeURIComponent('"><script>alert(1)</script>')}`);
    expect(html).not.toContain("<script>alert");
    expect(html).toContain("No results");
  });
});

it("images, scripts and styles of the documentation are served with the correct media type", async () => {
  const types = {
    "docs.css": "text/css",
    "copy.js": "text/javascript",
    "reference.js": "text/javascript",
    "favicon.png": "image/png",
  };
  for (const [name, type] of Object.entries(types)) {
    expect((await docs.request(`/docs/assets/${name}`)).headers.get("content-type")).toContain(type);
  }
  for (const name of readdirSync(new URL("images/", FOLDER))) {
    const answer = await docs.request(`/docs/images/${name}`);
    const type = name.endsWith(".svg") ? "image/svg+xml" : "image/png";
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
  }
});

it("the API reference page loads a summary of each operation first, and the details when the operation is opened", async () => {
  const script = await (await docs.request("/docs/assets/reference.js")).text();
  // biome-ignore lint/suspicious/noExplicitAny: options of a third-party script
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
    properties: { name: { type: "string" }, parent: { description: "Recursive: see the enclosing object." } },
  });
});
