import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, missing, visible } from "../support/isolated.ts";

let api: TestApi;
let call: Call;
beforeEach(async () => {
  api = await createTestApi();
  call = api.call;
});
afterEach(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object, as: Call = call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await call("GET", path)).body;

describe("an organization", () => {
  it("is shown whole, with what is in it", async () => {
    const role = await post("/iam/roles", { name: "a", permissions: ["apps.read"] });
    const group = await post("/iam/groups", { name: "g" });
    const [organization] = await get("/organizations");
    expect(organization).toMatchObject({ name: "default", iamId: null, tenantId: null, logoAssetId: null });
    expect(organization.roles).toEqual([role]);
    expect(organization.groups).toEqual([group]);
    expect(organization.spaces).toEqual(await get("/spaces"));
    const [member] = await get("/iam/memberships");
    expect(organization.members).toEqual([{ ...member, organization: null }]);
    expect(await get(`/organizations/${organization.id}`)).toEqual(organization);
  });

  it("is the only one that a caller sees", async () => {
    await post("/organizations", { name: "other" });
    const { body, headers } = await call("GET", "/organizations");
    expect([body.length, headers.get("x-total-count")]).toEqual([1, "1"]);
    const past = await call("GET", "/organizations?offset=1");
    expect([past.body, past.headers.get("x-total-count")]).toEqual([[], "1"]);
  });

  it("is changed by a merge patch", async () => {
    const [{ id }] = await get("/organizations");
    const put = async (patch: object) => (await call("PUT", `/organizations/${id}`, patch)).body;
    expect(await put({ tenantId: "t" })).toMatchObject({ name: "default", tenantId: "t" });
    expect(await put({ name: "new", tenantId: null })).toMatchObject({ name: "new", tenantId: null });
    expect(await put({ name: "" })).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "name" }],
    });
    expect(await put({ members: [] })).toMatchObject({ details: [{ path: "members" }] });
  });
});

describe("a new organization", () => {
  it("comes with a space and a key that may do all in it, told once", async () => {
    const made = await post("/organizations", { name: "other", iamId: "iam-1" });
    const { apiKey, ...organization } = made;
    expect(organization).toMatchObject({ name: "other", iamId: "iam-1", groups: [], roles: [] });
    const { key, ...shown } = apiKey;
    expect(shown).toMatchObject({ permissions: ["*"], defaultSpaceId: organization.spaces[0].id });
    const theirs = api.as(key);
    expect((await theirs("GET", "/organizations")).body).toEqual([organization]);
    expect((await theirs("GET", "/iam/api-keys")).body).toEqual([shown]);
    expect((await theirs("POST", "/iam/roles", { name: "a", permissions: ["*"] })).status).toBe(200);
    expect((await call("GET", `/organizations/${organization.id}`)).status).toBe(404);
  });

  it("needs organizations.write", async () => {
    const reader = api.as(await api.keyWith("organizations.read"));
    expect((await reader("POST", "/organizations", { name: "other" })).status).toBe(403);
  });
});

describe("deleting an organization", () => {
  it("takes keys, accounts, roles, groups and spaces with it", async () => {
    const made = await post("/organizations", { name: "other" });
    const theirs = api.as(made.apiKey.key);
    const role = await post("/iam/roles", { name: "a" }, theirs);
    const key = await post("/iam/api-keys", { name: "k", roleIds: [role.id] }, theirs);
    await post("/iam/groups", { name: "g", members: [key.accountId] }, theirs);
    await post("/iam/identities", { accountId: key.accountId, identifier: "ada" }, theirs);
    expect((await theirs("DELETE", `/organizations/${made.id}`)).body).toEqual({ id: made.id });
    expect((await theirs("GET", "/organizations")).status).toBe(401);
    expect((await api.as(key.key)("GET", "/organizations")).status).toBe(401);
    const { db } = api.database;
    for (const table of ["roles", "spaces", "groups", "memberships", "identities", "accounts"] as const) {
      const left = await db.selectFrom(table).select("id").where("organizationId", "=", made.id).execute();
      expect(left).toEqual([]);
    }
  });

  it("is refused while there is anything else in it, and for that of the first start", async () => {
    const made = await post("/organizations", { name: "other" });
    const theirs = api.as(made.apiKey.key);
    const blueprint = await post("/blueprints", { title: "b" }, theirs);
    const app = await post("/apps/install", { blueprintId: blueprint.id }, theirs);
    const remove = async () => (await theirs("DELETE", `/organizations/${made.id}`)).status;
    expect(await remove()).toBe(409);
    await theirs("DELETE", `/apps/${app.id}`);
    expect(await remove()).toBe(409);
    expect((await theirs("GET", "/organizations")).body).toHaveLength(1);
    await theirs("DELETE", `/blueprints/${blueprint.id}`);
    const artifact = await post("/stores/artifacts", { kind: "agent", title: "a" }, theirs);
    expect(await remove()).toBe(409);
    await theirs("DELETE", `/stores/artifacts/${artifact.id}`);
    const trunk = { name: "t", sipProvider: "sip_provider_1" };
    for (const [path, body] of [
      ["/telephony/sip-trunks", trunk],
      ["/states", { name: "s" }],
      ["/forms", { title: "f" }],
    ] as const) {
      const { id } = await post(path, body, theirs);
      expect(await remove()).toBe(409);
      await theirs("DELETE", `${path}/${id}`);
    }
    expect(await remove()).toBe(200);
    const [first] = await get("/organizations");
    expect((await call("DELETE", `/organizations/${first.id}`)).status).toBe(409);
    expect(await get("/organizations")).toEqual([first]);
  });
});

it("is hidden from the others", async () => {
  const [{ id }] = await get("/organizations");
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/organizations", id, { name: "theirs" });
  expect(visible(await call("GET", `/organizations/${missing(id)}`)).status).toBe(404);
});
