import { beforeAll, describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

let blueprintId: string;
const api = opened(createTestApi);
beforeAll(async () => {
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];
  blueprintId = (await api.call.post("/blueprints", { title: "x", uid: "x", channels })).id;
});

const create = (input: object) => api.call.post("/stores/artifacts", input);

describe("an artifact", () => {
  it("is created, read, listed, changed and deleted", async () => {
    const made = await create({ kind: "blueprint", title: "GitHub", blueprintId });
    expect(made).toEqual({
      ...{ id: expect.stringMatching(/^art_/), organizationId: expect.stringMatching(/^org_/) },
      ...{ kind: "blueprint", title: "GitHub", description: null, blueprintId },
      ...{ storeId: null, categoryId: null, status: "draft", pricingPlans: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    const path = `/stores/artifacts/${made.id}`;
    expect(await api.call.get(path)).toEqual(made);
    const changed = await api.call.put(path, { title: "Hub" });
    expect(changed).toMatchObject({ title: "Hub", storeId: null, blueprintId });
    const listed = await api.call("GET", "/stores/artifacts");
    expect([listed.headers.get("x-total-count"), listed.body]).toEqual(["1", [changed]]);
    expect(await api.call.delete(path)).toEqual({ id: made.id });
    expect((await api.call("GET", path)).status).toBe(404);
  });

  it("names a blueprint only where its kind is blueprint, a category or a status only in a store", async () => {
    const refusal = (input: object) =>
      api.call.refusal("POST", "/stores/artifacts", { kind: "blueprint", title: "x", blueprintId, ...input });
    for (const [path, input] of [
      ["blueprintId", { blueprintId: null }],
      ["blueprintId", { kind: "form" }],
      ["categoryId", { categoryId: "cat_x" }],
      ["status", { status: "published" }],
    ] as const)
      expect(await refusal(input)).toMatchObject({ status: 400, paths: [path] });
  });
});

describe("installing an artifact", () => {
  it("installs its blueprint", async () => {
    const { id } = await create({ kind: "blueprint", title: "other title", blueprintId });
    expect(await api.call.post("/apps/install", { artifactId: id })).toMatchObject({
      ...{ blueprintId, title: "x" },
      channels: [{ uid: "in" }],
    });
  });

  it("is refused for an artifact of another kind, or with a blueprint beside the artifact", async () => {
    const { id: artifactId } = await create({ kind: "form", title: "x" });
    const refusal = (input: object) => api.call.refusal("POST", "/apps/install", input);
    expect(await refusal({ artifactId })).toMatchObject({ status: 400, paths: ["artifactId"] });
    expect(await refusal({ artifactId, blueprintId })).toMatchObject({ status: 400 });
  });

  it("is 404 for a malformed id, and for an artifact whose blueprint is deleted", async () => {
    const install = (artifactId: string) => api.call("POST", "/apps/install", { artifactId });
    for (const artifactId of ["art_x", "", "%00"])
      expect([artifactId, (await install(artifactId)).status]).toEqual([artifactId, 404]);
    const { id: deleted } = await api.call.post("/blueprints", { title: "deleted" });
    const orphan = await create({ kind: "blueprint", title: "x", blueprintId: deleted });
    await api.call.delete(`/blueprints/${deleted}`);
    expect((await install(orphan.id)).status).toBe(404);
    expect(await api.call.get(`/stores/artifacts/${orphan.id}`)).toMatchObject({ blueprintId: null });
  });
});
