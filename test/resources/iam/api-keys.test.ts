import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const make = (grant: object = {}) => call.post("/iam/api-keys", { name: "k", ...grant });
const put = (id: string, patch: object) => call.put(`/iam/api-keys/${id}`, patch);

describe("an API key", () => {
  it("is returned once, stored as a hash, and allows only operations that its permissions cover", async () => {
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
    expect(await api.as(key).expectRejection("GET", "/iam/roles")).toMatchObject({ status: 403 });
    expect(await call.get(`/iam/api-keys/${shown.id}`)).toEqual(shown);
    const listed = await call.get("/iam/api-keys?limit=200");
    expect(listed).toContainEqual(shown);
    expect(JSON.stringify(listed)).not.toContain(key);
    const rows = await api.database.db.selectFrom("apiKeys").selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(key.slice(12));
  });

  it("gets a new service account, unless the request names an existing account", async () => {
    const { accountId } = await make({ name: "robot" });
    expect(await call.get(`/iam/accounts/${accountId}`)).toMatchObject({
      name: "robot",
      isService: true,
      status: "active",
      memberships: [{ permissions: [], roles: [] }],
    });
    const own = await make({ name: "first", permissions: ["iam.write"] });
    expect(
      await api.as(own.key).post("/iam/api-keys", { name: "second", accountId: own.accountId }),
    ).toMatchObject({
      accountId: own.accountId,
      createdById: own.accountId,
    });
  });

  it("can be created only for the caller's own account or a new one, and names the account that created it", async () => {
    const [{ id: creatorId }] = await call.get("/iam/accounts");
    expect(await make()).toMatchObject({ createdById: creatorId });
    const { id } = await call.post("/iam/accounts", { name: "Ada", status: "active" });
    const body = { name: "k", accountId: id };
    expect(await call.expectRejection("POST", "/iam/api-keys", body)).toMatchObject({ status: 403 });
    expect(
      await call.expectRejection("POST", "/iam/api-keys", { ...body, accountId: "acc_x" }),
    ).toMatchObject({
      status: 404,
    });
    // The operator created the first key outside the API, so no account is its creator.
    expect((await call.get("/iam/api-keys"))[0]).toMatchObject({ createdById: null });
  });

  it("gains and loses permissions immediately when its roles or its own permissions change", async () => {
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

  it("is changed by a merge patch, but cannot move to another account", async () => {
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
    expect(await call.expectRejection("PUT", `/iam/api-keys/${id}`, { accountId: "acc_x" })).toMatchObject({
      paths: ["accountId"],
    });
  });

  it("is rejected after its expiry, and works again after the expiry is removed", async () => {
    const expiresAt = "2999-01-31T10:30:00+01:00";
    const made = await make({ permissions: ["iam.read"], expiresAt });
    expect(made.expiresAt).toBe("2999-01-31T09:30:00.000Z");
    const theirs = api.as(made.key);
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
    const past = new Date(Date.now() - 1_000);
    await api.database.db.updateTable("apiKeys").set({ expiresAt: past }).where("id", "=", made.id).execute();
    // A write clears the gateway's cache of API keys.
    await put(made.id, { name: "new" });
    expect((await theirs("GET", "/iam/roles")).status).toBe(401);
    expect(await put(made.id, { expiresAt: null })).toMatchObject({ expiresAt: null });
    expect((await theirs("GET", "/iam/roles")).status).toBe(200);
  });

  it("is not created with a permission that does not exist, or with an expiry date that is malformed or past", async () => {
    expect(
      await call.expectRejection("POST", "/iam/api-keys", { name: "k", permissions: ["apps.fly"] }),
    ).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["permissions[0]"],
    });
    expect(
      await call.expectRejection("POST", "/iam/api-keys", { name: "k", expiresAt: "tomorrow" }),
    ).toMatchObject({
      paths: ["expiresAt"],
    });
    const wrong = await call("POST", "/iam/api-keys", { name: "k", permissions: ["app.read"] });
    expect(wrong.body.details).toEqual([
      {
        path: "permissions[0]",
        message: expect.stringMatching(/^must be one of \*, .*apps\.read, .*; did you mean apps\.read\?$/),
      },
    ]);
    const { body } = await call("POST", "/iam/api-keys", { name: "k", expiresAt: "2020-01-01T00:00:00Z" });
    expect(body.details).toEqual([{ path: "expiresAt", message: "must be in the future" }]);
  });

  it("is permanently invalid and not returned anymore after it is deleted", async () => {
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

describe("a caller with few permissions", () => {
  it("cannot create an API key with permissions that the caller lacks, directly or through a role", async () => {
    const role = await call.post("/iam/roles", { name: "writers", permissions: ["apps.write"] });
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    for (const grant of [{ permissions: ["apps.write"] }, { roleIds: [role.id] }, { permissions: ["*"] }]) {
      expect(await limited.expectRejection("POST", "/iam/api-keys", { name: "k", ...grant })).toMatchObject({
        status: 403,
        code: "permission_denied",
      });
    }
    await limited.post("/iam/api-keys", { name: "k", permissions: ["apps.read"] });
  });

  it("cannot add permissions that the caller lacks to an API key, or extend the lifetime of a key that has them", async () => {
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const expiresAt = "2100-01-01T00:00:00.000Z";
    const strong = await make({ permissions: ["apps.write"], expiresAt });
    const status = async (patch: object) =>
      (await limited("PUT", `/iam/api-keys/${strong.id}`, patch)).status;
    expect(await status({ permissions: ["apps.write", "iam.read"] })).toBe(403);
    expect(await status({ permissions: ["apps.write", "apps.read"] })).toBe(200);
    expect(await status({ expiresAt: null })).toBe(403);
    expect(await status({ expiresAt: "2101-01-01T00:00:00.000Z" })).toBe(403);
    expect(await status({ name: "new" })).toBe(200);
  });
});

describe("a caller that revokes access", () => {
  it("cannot revoke, restrict or shorten the lifetime of an API key with permissions that the caller lacks", async () => {
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const role = await call.post("/iam/roles", { name: "strong writers", permissions: ["apps.write"] });
    for (const grant of [{ permissions: ["*"] }, { permissions: ["apps.write"] }, { roleIds: [role.id] }]) {
      const { id } = await make(grant);
      const path = `/iam/api-keys/${id}`;
      const denied = { status: 403, code: "permission_denied" };
      expect(await limited.expectRejection("DELETE", path)).toMatchObject(denied);
      expect(await limited.expectRejection("PUT", path, { permissions: [], roleIds: [] })).toMatchObject(
        denied,
      );
      expect(await limited.expectRejection("PUT", path, { expiresAt: "2100-01-01T00:00:00Z" })).toMatchObject(
        denied,
      );
    }
    const weak = await make({ permissions: ["apps.read"] });
    expect(await limited.put(`/iam/api-keys/${weak.id}`, { permissions: [] })).toMatchObject({
      permissions: [],
    });
    expect(await limited.delete(`/iam/api-keys/${weak.id}`)).toEqual({ id: weak.id });
  });

  it("cannot disable or restrict an account, membership, identity or role with permissions that the caller lacks", async () => {
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const denied = { status: 403, code: "permission_denied" };
    const { accountId } = await make({ permissions: ["apps.write"] });
    const account = `/iam/accounts/${accountId}`;
    expect(await limited.expectRejection("PUT", account, { status: "disabled" })).toMatchObject(denied);
    expect(await limited.put(account, { name: "new" })).toMatchObject({ name: "new" });
    const member = await call.post("/iam/accounts", { name: "Ada", status: "active" });
    const membership = `/iam/memberships/${member.memberships[0].id}`;
    await call.put(membership, { permissions: ["apps.write", "apps.read"] });
    const identity = await call.post("/iam/identities", { accountId: member.id, identifier: "taken" });
    expect(await limited.expectRejection("PUT", membership, { permissions: ["apps.read"] })).toMatchObject(
      denied,
    );
    expect(await limited.expectRejection("DELETE", membership)).toMatchObject(denied);
    expect(await limited.expectRejection("DELETE", `/iam/identities/${identity.id}`)).toMatchObject(denied);
    expect(await limited.expectRejection("DELETE", `/iam/accounts/${member.id}`)).toMatchObject(denied);
    await limited.put(membership, { permissions: ["apps.write"] });
    const role = await call.post("/iam/roles", { name: "taken from", permissions: ["*"] });
    expect(await limited.expectRejection("PUT", `/iam/roles/${role.id}`, { permissions: [] })).toMatchObject(
      denied,
    );
    const cleaner = api.as(await api.keyWith("organizations.write"));
    const [{ id }] = await call.get("/organizations");
    expect(await cleaner.expectRejection("DELETE", `/organizations/${id}`)).toMatchObject(denied);
  });

  it("can revoke its own API key without any permission", async () => {
    const { id, key } = await make();
    const other = await make();
    expect(await api.as(key).expectRejection("DELETE", `/iam/api-keys/${other.id}`)).toMatchObject({
      status: 403,
    });
    const { accessToken } = await api.as(other.key).post("/auth/tokens");
    expect(await api.as(accessToken).delete(`/iam/api-keys/${other.id}`)).toEqual({ id: other.id });
    expect(await api.as(key).delete(`/iam/api-keys/${id}`)).toEqual({ id });
    expect((await api.as(key)("GET", "/spaces")).status).toBe(401);
  });
});

describe("the last key with all permissions", () => {
  const LOST = { status: 409, code: "conflict" };

  it("cannot be revoked or restricted, and its account cannot be disabled, not even by the key itself", async () => {
    const made = await call.post("/organizations", { name: "kept" });
    const owner = api.as(made.apiKey.key);
    const { id, accountId } = made.apiKey;
    const path = `/iam/api-keys/${id}`;
    // These two keys do not count: one lacks permissions, and the other expires.
    await owner.post("/iam/api-keys", { name: "weak", permissions: ["iam.write"] });
    const late = await owner.post("/iam/api-keys", {
      name: "late",
      permissions: ["*"],
      expiresAt: "2100-01-01T00:00:00Z",
    });
    const past = { expiresAt: new Date(0) };
    await api.database.db.updateTable("apiKeys").set(past).where("id", "=", late.id).execute();
    expect(await owner.expectRejection("DELETE", path)).toMatchObject(LOST);
    expect(await owner.expectRejection("PUT", path, { permissions: ["iam.write"] })).toMatchObject(LOST);
    expect(
      await owner.expectRejection("PUT", `/iam/accounts/${accountId}`, { status: "disabled" }),
    ).toMatchObject(LOST);
    await owner.put(path, { name: "new" });
    await owner.delete(`/iam/api-keys/${late.id}`);

    const next = await owner.post("/iam/api-keys", { name: "next", permissions: ["*"] });
    await owner.delete(path);
    expect((await owner("GET", "/spaces")).status).toBe(401);
    expect(await api.as(next.key).expectRejection("DELETE", `/iam/api-keys/${next.id}`)).toMatchObject(LOST);
  });

  it("cannot be given an expiry date if no other key with all permissions is valid on that date", async () => {
    const made = await call.post("/organizations", { name: "without end" });
    const owner = api.as(made.apiKey.key);
    const path = `/iam/api-keys/${made.apiKey.id}`;
    const until = (year: number) => ({ expiresAt: `${year}-01-01T00:00:00Z` });
    expect(await owner.expectRejection("PUT", path, until(2100))).toMatchObject(LOST);
    const other = await owner.post("/iam/api-keys", {
      name: "other",
      permissions: ["*"],
      ...until(2100),
    });
    expect(await owner.expectRejection("PUT", path, until(2101))).toMatchObject(LOST);
    await owner.put(path, until(2099));
    expect(await owner.expectRejection("PUT", `/iam/api-keys/${other.id}`, until(2099))).toMatchObject(LOST);
    await owner.put(path, { expiresAt: null });
    await owner.put(`/iam/api-keys/${other.id}`, until(2099));
  });

  it("cannot lose the role that grants its permissions, and that role cannot lose those permissions", async () => {
    const made = await call.post("/organizations", { name: "by role" });
    const owner = api.as(made.apiKey.key);
    const role = await owner.post("/iam/roles", { name: "all", permissions: ["*"] });
    await owner.put(`/iam/api-keys/${made.apiKey.id}`, { permissions: [], roleIds: [role.id] });
    expect(await owner.expectRejection("PUT", `/iam/roles/${role.id}`, { permissions: [] })).toMatchObject(
      LOST,
    );
    expect(
      await owner.expectRejection("PUT", `/iam/api-keys/${made.apiKey.id}`, { roleIds: [] }),
    ).toMatchObject(LOST);
    await owner.post("/iam/api-keys", { name: "next", permissions: ["*"] });
    await owner.put(`/iam/roles/${role.id}`, { permissions: ["iam.read"] });
  });

  it("remains valid if all keys with all permissions are revoked concurrently", async () => {
    const made = await call.post("/organizations", { name: "at once" });
    const owner = api.as(made.apiKey.key);
    const others = await Promise.all(
      Array.from({ length: 4 }, () => owner.post("/iam/api-keys", { name: "k", permissions: ["*"] })),
    );
    const keys = [made.apiKey, ...others];
    const statuses = await Promise.all(
      keys.map(async ({ id, key }) => (await api.as(key)("DELETE", `/iam/api-keys/${id}`)).status),
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 409]);
  });
});
