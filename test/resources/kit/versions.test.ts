import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

async function makeBlueprint(): Promise<{ readonly path: string; readonly etag: string }> {
  const channels = [{ uid: "main", kind: "webhook" }];
  const made = await api.call("POST", "/blueprints", { title: "a", channels });
  return { path: `/blueprints/${made.body.id}`, etag: made.headers.get("etag") ?? "" };
}

async function makeChannel(): Promise<{ readonly path: string; readonly etag: string }> {
  const blueprint = await makeBlueprint();
  const blueprintId = blueprint.path.slice("/blueprints/".length);
  const app = await api.call.post("/apps/install", { blueprintId });
  const path = `/apps/${app.id}/channels/${app.channels[0].id}`;
  return { path, etag: (await api.call("GET", path)).headers.get("etag") ?? "" };
}

async function makeForm(): Promise<{ readonly path: string; readonly etag: string }> {
  const made = await api.call("POST", "/forms", { title: "a" });
  return { path: `/forms/${made.body.id}`, etag: made.headers.get("etag") ?? "" };
}

describe.each([
  ["a blueprint", makeBlueprint],
  ["a form", makeForm],
  ["a channel", makeChannel],
])("%s", (_, make) => {
  it("has a strong ETag, which changes with every write", async () => {
    const { path, etag } = await make();
    expect(etag).toMatch(/^"[^"]+"$/);
    expect((await api.call("GET", path)).headers.get("etag")).toBe(etag);
    const changed = (await api.call("PUT", path, { title: "b" })).headers.get("etag");
    expect(changed).not.toBe(etag);
    expect((await api.call("GET", path)).headers.get("etag")).toBe(changed);
  });

  it("is changed or deleted only if the If-Match header contains its current ETag", async () => {
    const { path, etag } = await make();
    const current =
      (await api.call("PUT", path, { title: "b" }, { "if-match": etag })).headers.get("etag") ?? "";
    for (const wanted of [etag, `W/${current}`, '"other"', "nonsense"]) {
      const put = await api.call("PUT", path, { title: "c" }, { "if-match": wanted });
      expect([put.status, put.body.code]).toEqual([409, "conflict"]);
      expect((await api.call("DELETE", path, undefined, { "if-match": wanted })).status).toBe(409);
    }
    expect((await api.call.get(path)).title).toBe("b");
    expect((await api.call("PUT", path, { title: "c" }, { "if-match": "*" })).status).toBe(200);
    const latest = (await api.call("GET", path)).headers.get("etag") ?? "";
    const list = `"other", ${latest}`;
    expect((await api.call("DELETE", path, undefined, { "if-match": list })).status).toBe(200);
    expect((await api.call("DELETE", path, undefined, { "if-match": "*" })).status).toBe(404);
  });

  it("is changed by only one of three concurrent requests with the same If-Match header", async () => {
    const { path, etag } = await make();
    const answers = await Promise.all(
      ["b", "c", "d"].map((title) => api.call("PUT", path, { title }, { "if-match": etag })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
  });

  it("is returned as 304 if the If-None-Match header contains its current ETag", async () => {
    const { path, etag } = await make();
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const answer = await api.call("GET", path, undefined, { "if-none-match": known });
      expect([answer.status, answer.body, answer.headers.get("etag")]).toEqual([304, undefined, etag]);
    }
    expect((await api.call("GET", path, undefined, { "if-none-match": '"other"' })).status).toBe(200);
    const missing = path.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
    expect((await api.call("GET", missing, undefined, { "if-none-match": "*" })).status).toBe(404);
  });

  it("gets a 400 response to an invalid change, even if the If-Match header is outdated", async () => {
    const { path } = await make();
    const answer = await api.call("PUT", path, { title: "" }, { "if-match": '"other"' });
    expect(answer.status).toBe(400);
  });
});
