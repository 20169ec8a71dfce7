import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("a space", () => {
  it("can be created, read, listed, changed and deleted", async () => {
    const space = await call.post("/spaces", { name: "Test" });
    expect(space).toEqual({
      id: expect.stringMatching(/^spc_/),
      name: "Test",
      organizationId: (await call.get("/organizations"))[0].id,
      createdAt: expect.any(String),
      updatedAt: space.createdAt,
    });
    const path = `/spaces/${space.id}`;
    expect(await call.get(path)).toEqual(space);
    expect((await call.get("/spaces")).map(({ name }: { name: string }) => name)).toEqual([
      "default",
      "Test",
    ]);
    expect(await call.put(path, { name: "New" })).toMatchObject({ name: "New" });
    expect(await call.delete(path)).toEqual({ id: space.id });
    expect((await call("GET", path)).status).toBe(404);
  });

  it("cannot be deleted while it has apps", async () => {
    const space = await call.post("/spaces", { name: "Test" });
    const blueprint = await call.post("/blueprints", { title: "b" });
    const app = await call.post("/apps/install", { blueprintId: blueprint.id, spaceId: space.id });
    const path = `/spaces/${space.id}`;
    expect(await call.expectRejection("DELETE", path)).toMatchObject({ status: 409, code: "conflict" });
    expect(await call.get(path)).toEqual(space);
    await call.delete(`/apps/${app.id}`);
    await call.delete(path);
  });

  it("is no longer the default space of any API key after it is deleted", async () => {
    const { id: defaultSpaceId } = await call.post("/spaces", { name: "Test" });
    const key = await call.post("/iam/api-keys", { name: "k", defaultSpaceId });
    expect(key).toMatchObject({ defaultSpaceId });
    await call.delete(`/spaces/${defaultSpaceId}`);
    expect(await call.get(`/iam/api-keys/${key.id}`)).toMatchObject({ defaultSpaceId: null });
  });

  it("cannot be deleted if the gateway created it at its first start", async () => {
    const [{ id }] = await call.get("/spaces");
    expect(await call.expectRejection("DELETE", `/spaces/${id}`)).toMatchObject({ status: 409 });
  });
});
