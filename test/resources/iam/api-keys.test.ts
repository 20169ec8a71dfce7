import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const make = (grant: object = {}) => call.post("/iam/api-keys", { name: "k", ...grant });
const put = (id: string, patch: object) => call.put(`/iam/api-keys/${id}`, patch);

describe("an API key", () => {
  it("is told once, is stored as a hash, and opens only operations that its permissions allow", async () => {
    const { key, ...shown } = await make({ permissions: ["spaces.read"] });
    const spaces = await call.get("/spaces");
    expect(key).toMatch(/^ik_[a-z0-9]{40}$/);
    expect(shown).toMatchObject({
      id: expect.stringMatching(/^key_/),
      name: "k",
      prefix: key.slice(0, 11),
      defaultSpaceId: spaces[0].id,
      roleIds: [],
      permissions: ["spaces.read"],
      expiresAt: null,
    });
    expect(await api.as(key).get("/spaces")).toEqual(spaces);
    expect(await api.as(key).refusal("GET", "/iam/roles")).toMatchObject({ status: 403 });
    expect(await call.get(`/iam/api-keys/${shown.id}`)).toEqual(shown);
    const listed = await call.get("/iam/api-keys?limit=200");
    expect(listed).toContainEqual(shown);
    expect(JSON.stringify(listed)).not.toContain(key);
    const rows = await api.database.db.selectFrom("apiKeys").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(key.slice(12));
  });

  it("gets a service account of its own, unless an account is named", async () => {
    const { accountId } = await make({ name: "robot" });
    expect(await call.get(`/iam/accounts/${accountId}`)).toMatchObject({
      name: "robot",
      isService: true,
      status: "active",
      memberships: [{ permissions: [], roles: [] }],
    });
    const { id } = await call.post("/iam/accounts", { name: "Ada", status: "active" });
    expect(await make({ accountId: id })).toMatchObject({ accountId: id });
  });

  it("follows changes of its roles and of its own permissions at once", async () => {
    const role = await call.post("/iam/roles", { name: "followed" });
    const made = await make({ roleIds: [role.id], permissions: ["iam.read"] });
    const theirs = api.as(made.key);
    const status = async () => [
      (await theirs("GET", "/iam/roles")).status,
      (await theirs("GET", "/spaces")).status,
    ];
    expect(await status()).toEqual([200, 403]);
    await call.put(`/iam/roles/${role.id}`, { permissions: ["spaces.read"] });
    expect(await status()).toEqual([200, 200]);
    await put(made.id, { permissions: [] });
    expect(await status()).toEqual([403, 200]);
    await put(made.id, { roleIds: [] });
    expect(await status()).toEqual([403, 403]);
  });

  it("is changed by a merge patch, but stays its account's", async () => {
    const space = await call.post("/spaces", { name: "other" });
    const { id } = await make({ permissions: ["iam.read"] });
    expect(await put(id, { defaultSpaceId: space.id })).toMatchObject({
      name: "k",
      defaultSpaceId: space.id,
      permissions: ["iam.read"],
    });
    expect(await put(id, { defaultSpaceId: null, name: "new" })).toMatchObject({
      name: "new",
      defaultSpaceId: null,
    });
    expect(await call.refusal("PUT", `/iam/api-keys/${id}`, { accountId: "acc_x" })).toMatchObject({
      paths: ["accountId"],
    });
  });

  it("opens nothing after its expiry, which a later change can lift", async () => {
    const expiresAt = "2999-01-31T10:30:00+01:00";
    const made = await make({ permissions: ["iam.read"], expiresAt });
    expect(made.expiresAt).toBe("2999-01-31T09:30:00.000Z");
    const theirs = api.as(made.key);
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
    const past = new Date(Date.now() - 1_000);
    await api.database.db.updateTable("apiKeys").set({ expiresAt: past }).where("id", "=", made.id).execute();
    // A write makes the gateway forget the keys that it has looked up.
    await put(made.id, { name: "new" });
    expect((await theirs("GET", "/iam/roles")).status).toBe(401);
    expect(await put(made.id, { expiresAt: null })).toMatchObject({ expiresAt: null });
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
  });

  it("is refused with a permission that does not exist, or an expiry that is no time or has passed", async () => {
    expect(await call.refusal("POST", "/iam/api-keys", { name: "k", permissions: ["apps.fly"] })).toEqual({
      ...{ status: 400, code: "invalid_parameters", paths: ["permissions[0]"] },
    });
    expect(await call.refusal("POST", "/iam/api-keys", { name: "k", expiresAt: "tomorrow" })).toMatchObject({
      paths: ["expiresAt"],
    });
    const { body } = await call("POST", "/iam/api-keys", { name: "k", expiresAt: "2020-01-01T00:00:00Z" });
    expect(body.details).toEqual([{ path: "expiresAt", message: "must be in the future" }]);
  });

  it("is revoked for good when deleted, and never shown again", async () => {
    const { id, key } = await make({ permissions: ["iam.read"] });
    expect((await api.as(key)("GET", "/iam/roles")).status).toBe(200);
    const before = await call("GET", "/iam/api-keys?limit=200");
    expect(await call.delete(`/iam/api-keys/${id}`)).toEqual({ id });
    expect((await api.as(key)("GET", "/iam/roles")).status).toBe(401);
    for (const method of ["GET", "PUT", "DELETE"]) {
      expect((await call(method, `/iam/api-keys/${id}`, method === "PUT" ? {} : undefined)).status).toBe(404);
    }
    const { body, headers } = await call("GET", "/iam/api-keys?limit=200");
    expect(body).toEqual(before.body.filter((one: { id: string }) => one.id !== id));
    expect(body).toHaveLength(before.body.length - 1);
    expect(headers.get("x-total-count")).toBe(String(body.length));
    const row = await api.database.db
      .selectFrom("apiKeys")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
    expect(row?.revokedAt).toBeInstanceOf(Date);
  });
});

describe("a caller cannot grant more than it holds", () => {
  it("by a new key, directly or by a role", async () => {
    const role = await call.post("/iam/roles", { name: "writers", permissions: ["apps.write"] });
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    for (const grant of [{ permissions: ["apps.write"] }, { roleIds: [role.id] }, { permissions: ["*"] }]) {
      expect(await limited.refusal("POST", "/iam/api-keys", { name: "k", ...grant })).toMatchObject({
        ...{ status: 403, code: "permission_denied" },
      });
    }
    await limited.post("/iam/api-keys", { name: "k", permissions: ["apps.read"] });
  });

  it("by adding permissions to a key, or by letting it last longer", async () => {
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const expiresAt = "2100-01-01T00:00:00.000Z";
    const strong = await make({ permissions: ["apps.write"], expiresAt });
    const status = async (patch: object) =>
      (await limited("PUT", `/iam/api-keys/${strong.id}`, patch)).status;
    expect(await status({ permissions: ["apps.write", "iam.read"] })).toBe(403);
    expect(await status({ permissions: ["apps.write", "apps.read"] })).toBe(200);
    expect(await status({ expiresAt: null })).toBe(403);
    expect(await status({ expiresAt: "2101-01-01T00:00:00.000Z" })).toBe(403);
    expect(await status({ expiresAt: "2099-01-01T00:00:00.000Z" })).toBe(200);
    expect(await status({ name: "new" })).toBe(200);
  });
});
