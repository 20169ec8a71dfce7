import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden } from "../support/isolated.ts";

let api: TestApi;
let call: Call;
beforeEach(async () => {
  api = await createTestApi();
  call = api.call;
});
afterEach(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object, as: Call = call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await call("GET", path)).body;

describe("a space", () => {
  it("is made, seen, listed, changed and deleted", async () => {
    const space = await post("/spaces", { name: "Test" });
    expect(space).toEqual({
      id: expect.stringMatching(/^spc_/),
      name: "Test",
      organizationId: (await get("/organizations"))[0].id,
      createdAt: expect.any(String),
      updatedAt: space.createdAt,
    });
    expect(await get(`/spaces/${space.id}`)).toEqual(space);
    expect((await get("/spaces")).map(({ name }: { name: string }) => name)).toEqual(["default", "Test"]);
    expect((await call("PUT", `/spaces/${space.id}`, { name: "New" })).body).toMatchObject({ name: "New" });
    expect((await call("DELETE", `/spaces/${space.id}`)).body).toEqual({ id: space.id });
    expect((await call("GET", `/spaces/${space.id}`)).status).toBe(404);
  });

  it("is refused with each field that does not fit", async () => {
    expect(await post("/spaces", { name: 1, extra: 1 })).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "name" }, { path: "extra" }],
    });
  });

  it("stays while it has apps", async () => {
    const space = await post("/spaces", { name: "Test" });
    const blueprint = await post("/blueprints", { title: "b" });
    const app = await post("/apps/install", { blueprintId: blueprint.id, spaceId: space.id });
    expect((await call("DELETE", `/spaces/${space.id}`)).body).toMatchObject({ code: "conflict" });
    expect(await get(`/spaces/${space.id}`)).toEqual(space);
    await call("DELETE", `/apps/${app.id}`);
    expect((await call("DELETE", `/spaces/${space.id}`)).status).toBe(200);
  });

  it("is let go of by keys whose default it was", async () => {
    const space = await post("/spaces", { name: "Test" });
    const key = await post("/iam/api-keys", { name: "k", defaultSpaceId: space.id });
    await call("DELETE", `/spaces/${space.id}`);
    expect(await get(`/iam/api-keys/${key.id}`)).toMatchObject({ defaultSpaceId: null });
  });

  it("of the first start stays", async () => {
    const [{ id }] = await get("/spaces");
    expect((await call("DELETE", `/spaces/${id}`)).status).toBe(409);
  });
});

it("is hidden from other organizations", async () => {
  const space = await post("/spaces", { name: "ours" });
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/spaces", space.id, { name: "theirs" });
  const { body, headers } = await stranger("GET", "/spaces");
  expect([body.map(({ name }: { name: string }) => name), headers.get("x-total-count")]).toEqual([
    ["other"],
    "1",
  ]);
});
