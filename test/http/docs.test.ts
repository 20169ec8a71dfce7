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
