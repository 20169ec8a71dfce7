import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
let blueprintId: string;
beforeAll(async () => {
  api = await createTestApi();
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];
  blueprintId = (await api.call("POST", "/blueprints", { title: "x", uid: "x", channels })).body.id;
});
afterAll(() => api[Symbol.asyncDispose]());

const create = (input: object) => api.call("POST", "/stores/artifacts", input);
const paths = (body: { details: readonly { path: string }[] }) => body.details.map(({ path }) => path);

describe("an artifact", () => {
  it("is made, read, listed, changed and deleted", async () => {
    const made = await create({ kind: "blueprint", title: "GitHub", blueprintId });
    expect([made.status, made.body]).toEqual([
      200,
      {
        ...{ id: expect.stringMatching(/^art_/), organizationId: expect.stringMatching(/^org_/) },
        ...{ kind: "blueprint", title: "GitHub", description: null, blueprintId },
        ...{ storeId: null, categoryId: null, status: "draft", pricingPlans: [] },
        ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
      },
    ]);
    const path = `/stores/artifacts/${made.body.id}`;
    expect((await api.call("GET", path)).body).toEqual(made.body);
    const changed = await api.call("PUT", path, { title: "Hub" });
    expect(changed.body).toMatchObject({ title: "Hub", storeId: null, blueprintId });
    const listed = await api.call("GET", "/stores/artifacts");
    expect([listed.headers.get("x-total-count"), listed.body]).toEqual(["1", [changed.body]]);
    expect((await api.call("DELETE", path)).body).toEqual({ id: made.body.id });
    expect((await api.call("GET", path)).status).toBe(404);
  });

  it("names its blueprint where it is one, and a category only in a store", async () => {
    const refused = async (input: object) => {
      const { status, body } = await create({ kind: "blueprint", title: "x", blueprintId, ...input });
      return [status, paths(body)];
    };
    expect(await refused({ blueprintId: null })).toEqual([400, ["blueprintId"]]);
    expect(await refused({ kind: "form" })).toEqual([400, ["blueprintId"]]);
    expect(await refused({ kind: "other" })).toEqual([400, ["kind"]]);
    expect(await refused({ categoryId: "cat_x" })).toEqual([400, ["categoryId"]]);
    expect(await refused({ status: "published" })).toEqual([400, ["status"]]);
    expect(await refused({ more: 1 })).toEqual([400, ["more"]]);
  });

  it("is its organization's alone, and names no blueprint of another", async () => {
    const { body } = await create({ kind: "blueprint", title: "x", blueprintId });
    const stranger = api.as(await api.strangerKey());
    for (const [method, path, input] of [
      ["GET", `/stores/artifacts/${body.id}`],
      ["PUT", `/stores/artifacts/${body.id}`, { title: "y" }],
      ["DELETE", `/stores/artifacts/${body.id}`],
      ["POST", "/stores/artifacts", { kind: "blueprint", title: "x", blueprintId }],
      ["POST", "/apps/install", { artifactId: body.id }],
    ] as const) {
      expect([path, (await stranger(method, path, input)).status]).toEqual([path, 404]);
    }
    const reader = api.as(await api.keyWith("stores.read"));
    expect((await reader("GET", `/stores/artifacts/${body.id}`)).status).toBe(200);
    expect((await reader("DELETE", `/stores/artifacts/${body.id}`)).status).toBe(403);
  });
});

describe("installing an artifact", () => {
  it("installs its blueprint", async () => {
    const { body } = await create({ kind: "blueprint", title: "other title", blueprintId });
    const installed = await api.call("POST", "/apps/install", { artifactId: body.id });
    expect([installed.status, installed.body]).toEqual([
      200,
      expect.objectContaining({
        blueprintId,
        title: "x",
        channels: [expect.objectContaining({ uid: "in" })],
      }),
    ]);
  });

  it("is 400 for another kind, or with a blueprint beside it; 404 where it, or its blueprint, is not there", async () => {
    const form = (await create({ kind: "form", title: "x" })).body;
    const install = (input: object) => api.call("POST", "/apps/install", input);
    const refused = await install({ artifactId: form.id });
    expect([refused.status, paths(refused.body)]).toEqual([400, ["artifactId"]]);
    expect((await install({ artifactId: form.id, blueprintId })).status).toBe(400);
    for (const artifactId of ["art_0123456789abcdefghjkmnp", "art_x", "", "%00"]) {
      expect([artifactId, (await install({ artifactId })).status]).toEqual([artifactId, 404]);
    }
    const gone = (await api.call("POST", "/blueprints", { title: "gone" })).body.id;
    const orphan = (await create({ kind: "blueprint", title: "x", blueprintId: gone })).body;
    await api.call("DELETE", `/blueprints/${gone}`);
    expect((await install({ artifactId: orphan.id })).status).toBe(404);
    expect((await api.call("GET", `/stores/artifacts/${orphan.id}`)).body.blueprintId).toBeNull();
  });
});
