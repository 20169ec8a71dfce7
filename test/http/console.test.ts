import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Hono } from "hono";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createConsole } from "../../src/http/console.ts";
import type { RequestEnv } from "../../src/http/context.ts";
import { answerErrors } from "../../src/http/errors.ts";

const SIGN_IN = { issuer: "https://id.example/tenant", clientId: "console", audience: "inlet" };
const PAGE = '<!doctype html><script type="module" src="/console/assets/index-1a2b.js"></script>';
const SCRIPT = "export {};";

let dist: string;
const open = (deps: Partial<Parameters<typeof createConsole>[0]> = {}): Hono<RequestEnv> => {
  const page = createConsole({ signIn: undefined, dist, ...deps });
  answerErrors(page);
  return page;
};

beforeAll(async () => {
  dist = await mkdtemp(join(tmpdir(), "inlet-console-"));
  await mkdir(join(dist, "assets"));
  await writeFile(join(dist, "index.html"), PAGE);
  await writeFile(join(dist, ".stamp"), "secret of the build");
  await writeFile(join(dist, "assets", "index-1a2b.js"), SCRIPT);
  await writeFile(join(dist, "assets", "index-1a2b.js.gz"), gzipSync(SCRIPT));
  await writeFile(join(dist, "assets", "font-1a2b.woff2"), "wOF2");
});
afterAll(() => rm(dist, { recursive: true, force: true }));

it("the page of the web console is served at the path of each view, without caching", async () => {
  for (const path of ["/console", "/console/", "/console/apps/app_1/events", "/console/callback?code=1"]) {
    const answer = await open().request(path);
    expect([path, answer.status, await answer.text()]).toEqual([path, 200, PAGE]);
    expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(answer.headers.get("cache-control")).toBe("no-cache");
  }
});

it("the path / redirects to the web console", async () => {
  const { status, headers } = await open().request("/");
  expect([status, headers.get("location")]).toEqual([302, "console"]);
});

it("the Content-Security-Policy of the web console allows only the gateway itself and the configured OpenID Connect issuer", async () => {
  for (const path of [
    "/console",
    "/console/apps",
    "/console/assets/index-1a2b.js",
    "/console/settings.json",
  ]) {
    const { headers } = await open({ signIn: SIGN_IN }).request(path);
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:; " +
        "connect-src 'self' https://id.example; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  }
  const without = (await open().request("/console")).headers.get("content-security-policy");
  expect(without).toContain("connect-src 'self';");
});

it("assets of the web console are served with permanent caching, and compressed if the client accepts compression", async () => {
  const ask = (encoding?: string) =>
    open().request(
      "/console/assets/index-1a2b.js",
      encoding ? { headers: { "accept-encoding": encoding } } : {},
    );
  const packed = await ask("br, gzip");
  expect(packed.headers.get("content-encoding")).toBe("gzip");
  expect(packed.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(packed.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
  expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(SCRIPT);
  const font = await open().request("/console/assets/font-1a2b.woff2");
  expect([font.status, font.headers.get("content-type"), await font.text()]).toEqual([
    200,
    "font/woff2",
    "wOF2",
  ]);
  for (const encoding of [undefined, "identity", "gzip;q=0"]) {
    const plain = await ask(encoding);
    expect([plain.headers.get("content-encoding"), await plain.text()]).toEqual([null, SCRIPT]);
  }
});

it("unknown files of the web console and paths outside of its folder receive 404", async () => {
  for (const name of [
    "index-0000.js",
    "index-1a2b.js.gz",
    "..%2f.stamp",
    "..%2f..%2fpackage.js",
    ".stamp",
    "a%00.js",
  ]) {
    expect([name, (await open().request(`/console/assets/${name}`)).status]).toEqual([name, 404]);
  }
});

it("the response explains how to build the web console if it has not been built", async () => {
  const answer = await open({ dist: join(dist, "none") }).request("/console/apps");
  expect(answer.status).toBe(503);
  expect(await answer.text()).toContain("npm run build:console");
});

it("the sign-in settings of the web console are served without secrets", async () => {
  const told = async (deps: object) => (await open(deps).request("/console/settings.json")).json();
  expect(await told({ signIn: SIGN_IN })).toEqual({ signIn: SIGN_IN });
  expect(await told({})).toEqual({ signIn: null });
});
