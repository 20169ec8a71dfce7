import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Call, createTestApi, type TestApi } from "../support/api.ts";
import { expectHidden, expectUnknownInside } from "../support/isolated.ts";

let api: TestApi;
let call: Call;
beforeEach(async () => {
  api = await createTestApi();
  call = api.call;
});
afterEach(() => api[Symbol.asyncDispose]());

const post = async (path: string, body: object, as: Call = call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await call("GET", path)).body;

const put = async (id: string, patch: object, as: Call = call) => as("PUT", `/iam/api-keys/${id}`, patch);

describe("an API key", () => {
  it("is told once, and opens what it may", async () => {
    const { key, ...shown } = await post("/iam/api-keys", { name: "k", permissions: ["spaces.read"] });
    const [space] = await get("/spaces");
    expect(key).toMatch(/^ik_[a-z0-9]{40}$/);
    expect(shown).toMatchObject({
      id: expect.stringMatching(/^key_/),
      name: "k",
      prefix: key.slice(0, 11),
      defaultSpaceId: space.id,
      roleIds: [],
      permissions: ["spaces.read"],
      expiresAt: null,
    });
    expect((await api.as(key)("GET", "/spaces")).body).toEqual([space]);
    expect((await api.as(key)("GET", "/iam/roles")).status).toBe(403);
    expect(await get(`/iam/api-keys/${shown.id}`)).toEqual(shown);
    expect(JSON.stringify(await get("/iam/api-keys"))).not.toContain(key);
    const rows = await api.database.db.selectFrom("apiKeys").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(key.slice(12));
  });

  it("belongs to a service account of its own, unless one is named", async () => {
    const { accountId } = await post("/iam/api-keys", { name: "robot" });
    expect(await get(`/iam/accounts/${accountId}`)).toMatchObject({
      name: "robot",
      isService: true,
      status: "active",
      memberships: [{ permissions: [], roles: [] }],
    });
    const { id } = await post("/iam/accounts", { name: "Ada", status: "active" });
    expect(await post("/iam/api-keys", { name: "k", accountId: id })).toMatchObject({ accountId: id });
  });

  it("may do what its roles may at the time, beside its own permissions", async () => {
    const role = await post("/iam/roles", { name: "a" });
    const made = await post("/iam/api-keys", { name: "k", roleIds: [role.id], permissions: ["iam.read"] });
    const theirs = api.as(made.key);
    const status = async () => [
      (await theirs("GET", "/iam/roles")).status,
      (await theirs("GET", "/spaces")).status,
    ];
    expect(await status()).toEqual([200, 403]);
    await call("PUT", `/iam/roles/${role.id}`, { permissions: ["spaces.read"] });
    expect(await status()).toEqual([200, 200]);
    await put(made.id, { permissions: [] });
    expect(await status()).toEqual([403, 200]);
    await put(made.id, { roleIds: [] });
    expect(await status()).toEqual([403, 403]);
  });

  it("is changed by a merge patch", async () => {
    const space = await post("/spaces", { name: "other" });
    const { id } = await post("/iam/api-keys", { name: "k", permissions: ["iam.read"] });
    expect((await put(id, { defaultSpaceId: space.id })).body).toMatchObject({
      name: "k",
      defaultSpaceId: space.id,
      permissions: ["iam.read"],
    });
    expect((await put(id, { defaultSpaceId: null, name: "new" })).body).toMatchObject({
      name: "new",
      defaultSpaceId: null,
    });
    expect((await put(id, { accountId: "acc_x" })).body).toMatchObject({ details: [{ path: "accountId" }] });
  });

  it("ends when it expires", async () => {
    const expiresAt = "2999-01-31T10:30:00+01:00";
    const made = await post("/iam/api-keys", { name: "k", permissions: ["iam.read"], expiresAt });
    expect(made.expiresAt).toBe("2999-01-31T09:30:00.000Z");
    const theirs = api.as(made.key);
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
    const past = new Date(Date.now() - 1_000);
    await api.database.db.updateTable("apiKeys").set({ expiresAt: past }).where("id", "=", made.id).execute();
    // Writes forget what was looked up.
    await put(made.id, { name: "new" });
    expect((await theirs("GET", "/iam/roles")).status).toBe(401);
    expect((await put(made.id, { expiresAt: null })).body).toMatchObject({ expiresAt: null });
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
  });

  it("is refused with each field that does not fit", async () => {
    const bad = { name: "", permissions: ["apps.read"], expiresAt: "tomorrow", extra: 1 };
    expect(await post("/iam/api-keys", bad)).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "name" }, { path: "expiresAt" }, { path: "extra" }],
    });
    expect(await post("/iam/api-keys", { name: "k", permissions: ["apps.fly"] })).toMatchObject({
      details: [{ path: "permissions[0]" }],
    });
    expect(await post("/iam/api-keys", { name: "k", expiresAt: "2020-01-01T00:00:00Z" })).toMatchObject({
      details: [{ path: "expiresAt", message: "must be in the future" }],
    });
  });

  it("is revoked for good when deleted, and never seen again", async () => {
    const { id, key } = await post("/iam/api-keys", { name: "k", permissions: ["iam.read"] });
    expect((await api.as(key)("GET", "/iam/roles")).status).toBe(200);
    expect((await call("DELETE", `/iam/api-keys/${id}`)).body).toEqual({ id });
    expect((await api.as(key)("GET", "/iam/roles")).status).toBe(401);
    for (const method of ["GET", "PUT", "DELETE"]) {
      expect((await call(method, `/iam/api-keys/${id}`, method === "PUT" ? {} : undefined)).status).toBe(404);
    }
    const { body, headers } = await call("GET", "/iam/api-keys");
    expect([body.length, headers.get("x-total-count")]).toEqual([1, "1"]);
    const row = await api.database.db
      .selectFrom("apiKeys")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    expect(row?.revokedAt).toBeInstanceOf(Date);
  });
});

describe("nobody grants more than they hold", () => {
  it("by a new key, be it directly or by a role", async () => {
    const role = await post("/iam/roles", { name: "a", permissions: ["apps.write"] });
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    for (const grant of [{ permissions: ["apps.write"] }, { roleIds: [role.id] }, { permissions: ["*"] }]) {
      expect((await limited("POST", "/iam/api-keys", { name: "k", ...grant })).status).toBe(403);
    }
    const { status } = await limited("POST", "/iam/api-keys", { name: "k", permissions: ["apps.read"] });
    expect(status).toBe(200);
  });

  it("by adding to a key, or by letting one last longer", async () => {
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const expiresAt = "2100-01-01T00:00:00.000Z";
    const strong = await post("/iam/api-keys", { name: "k", permissions: ["apps.write"], expiresAt });
    const status = async (patch: object) => (await put(strong.id, patch, limited)).status;
    expect(await status({ permissions: ["apps.write", "iam.read"] })).toBe(403);
    expect(await status({ permissions: ["apps.write", "apps.read"] })).toBe(200);
    expect(await status({ expiresAt: null })).toBe(403);
    expect(await status({ expiresAt: "2101-01-01T00:00:00.000Z" })).toBe(403);
    expect(await status({ expiresAt: "2099-01-01T00:00:00.000Z" })).toBe(200);
    expect(await status({ name: "new" })).toBe(200);
  });
});

it("is hidden from other organizations, whose accounts, roles and spaces are unknown to it", async () => {
  const key = await post("/iam/api-keys", { name: "ours" });
  const role = await post("/iam/roles", { name: "a" });
  const [space] = await get("/spaces");
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/iam/api-keys", key.id, { name: "theirs" });
  const inside = (id: string, bodyWith: (id: string) => object) =>
    expectUnknownInside(stranger, "POST", "/iam/api-keys", id, (one) => ({ name: "k", ...bodyWith(one) }));
  await inside(key.accountId, (accountId) => ({ accountId }));
  await inside(role.id, (id) => ({ roleIds: [id] }));
  await inside(space.id, (defaultSpaceId) => ({ defaultSpaceId }));
  const theirs = await post("/iam/api-keys", { name: "theirs" }, stranger);
  const path = `/iam/api-keys/${theirs.id}`;
  await expectUnknownInside(stranger, "PUT", path, space.id, (defaultSpaceId) => ({ defaultSpaceId }));
  await expectUnknownInside(stranger, "PUT", path, role.id, (id) => ({ roleIds: [id] }));
});
