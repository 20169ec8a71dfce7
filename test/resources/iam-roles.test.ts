import pg from "pg";
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

const create = async (role: object, as: Call = call) => (await as("POST", "/iam/roles", role)).body;
const refused = async (method: string, path: string, body?: object, as: Call = call) => {
  const { status, body: error } = await as(method, path, body);
  return { status, code: error.code, paths: error.details?.map(({ path }: { path: string }) => path) };
};

describe("a role", () => {
  it("shows its permissions by their names, each as the organization's entity", async () => {
    const role = await create({ name: "Operators", permissions: ["iam.read", "apps.read", "apps.read"] });
    const listed = (await call("GET", "/iam/permissions")).body;
    const named = (name: string) => listed.find((one: { name: string }) => one.name === name);
    expect(role).toEqual({
      id: expect.stringMatching(/^role_/),
      name: "Operators",
      description: null,
      organizationId: named("*").organizationId,
      permissions: { "apps.read": named("apps.read"), "iam.read": named("iam.read") },
      createdAt: expect.any(String),
      updatedAt: role.createdAt,
    });
    expect((await call("GET", `/iam/roles/${role.id}`)).body).toEqual(role);
    expect(await create({ name: "Nothing" })).toMatchObject({ permissions: {} });
  });

  it("is changed by a merge patch: arrays replace, null clears, what is not there stays", async () => {
    const { id } = await create({ name: "a", description: "first", permissions: ["apps.read"] });
    const put = async (patch: object) => (await call("PUT", `/iam/roles/${id}`, patch)).body;
    expect(await put({ name: "b" })).toMatchObject({ name: "b", description: "first" });
    expect(Object.keys((await put({ permissions: ["apps.write"] })).permissions)).toEqual(["apps.write"]);
    expect(await put({ description: null, permissions: null })).toMatchObject({
      name: "b",
      description: null,
      permissions: {},
    });
    expect(await refused("PUT", `/iam/roles/${id}`, { name: null })).toMatchObject({ paths: ["name"] });
  });

  it("is gone when deleted", async () => {
    const { id } = await create({ name: "a" });
    expect((await call("DELETE", `/iam/roles/${id}`)).body).toEqual({ id });
    expect((await call("GET", `/iam/roles/${id}`)).status).toBe(404);
    expect((await call("DELETE", `/iam/roles/${id}`)).status).toBe(404);
  });

  it("is refused with each field that does not fit", async () => {
    expect(
      await refused("POST", "/iam/roles", { permissions: ["apps.fly", "apps.read"], name: "a" }),
    ).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["permissions[0]"],
    });
    expect(await refused("POST", "/iam/roles", { name: "", extra: 1 })).toMatchObject({
      paths: ["name", "extra"],
    });
    expect(await refused("POST", "/iam/roles", {})).toMatchObject({ paths: ["name"] });
  });

  it("has a name of its own in its organization, and in no other", async () => {
    const { id } = await create({ name: "a" });
    await create({ name: "b" });
    expect(await refused("POST", "/iam/roles", { name: "a" })).toMatchObject({ status: 409 });
    expect(await refused("PUT", `/iam/roles/${id}`, { name: "b" })).toMatchObject({ status: 409 });
    expect(await create({ name: "a" }, api.as(await api.strangerKey()))).toMatchObject({ name: "a" });
  });

  it("stays while an API key or a member has it, and no longer", async () => {
    const role = await create({ name: "a" });
    const key = (await call("POST", "/iam/api-keys", { name: "k", roleIds: [role.id] })).body;
    const [member] = (await call("GET", "/iam/memberships")).body;
    expect(await refused("DELETE", `/iam/roles/${role.id}`)).toMatchObject({ status: 409 });
    await call("PUT", `/iam/memberships/${member.id}`, { roleIds: [role.id] });
    await call("DELETE", `/iam/api-keys/${key.id}`);
    expect(await refused("DELETE", `/iam/roles/${role.id}`)).toMatchObject({ status: 409 });
    await call("PUT", `/iam/memberships/${member.id}`, { roleIds: [] });
    expect((await call("DELETE", `/iam/roles/${role.id}`)).status).toBe(200);
  });
});

describe("nobody grants more than they hold", () => {
  it("refuses a new role with more, and a role with more added; the rest can be changed", async () => {
    const limited = api.as(await api.keyWith("iam.write", "iam.read", "apps.read"));
    expect(
      await refused("POST", "/iam/roles", { name: "a", permissions: ["apps.write"] }, limited),
    ).toMatchObject({
      status: 403,
      code: "permission_denied",
    });
    expect(await refused("POST", "/iam/roles", { name: "a", permissions: ["*"] }, limited)).toMatchObject({
      status: 403,
    });
    const strong = await create({ name: "strong", permissions: ["apps.write"] });
    const more = { permissions: ["apps.write", "blueprints.write"] };
    expect(await refused("PUT", `/iam/roles/${strong.id}`, more, limited)).toMatchObject({ status: 403 });
    expect((await limited("PUT", `/iam/roles/${strong.id}`, { description: "new" })).status).toBe(200);
    expect((await limited("PUT", `/iam/roles/${strong.id}`, { permissions: ["apps.read"] })).status).toBe(
      200,
    );
    // What it no longer has cannot be given back by who does not hold it.
    expect(
      await refused("PUT", `/iam/roles/${strong.id}`, { permissions: ["apps.write"] }, limited),
    ).toMatchObject({
      status: 403,
    });
  });

  it("asks for iam.read and iam.write", async () => {
    const reader = api.as(await api.keyWith("iam.read"));
    expect((await reader("POST", "/iam/roles/list", {})).status).toBe(200);
    expect((await reader("POST", "/iam/roles", { name: "a" })).status).toBe(403);
    expect((await api.as(await api.keyWith("apps.read"))("POST", "/iam/roles/list", {})).status).toBe(403);
  });
});

describe("the list", () => {
  it("is paged by the body, or by the query", async () => {
    for (const name of ["a", "b", "c"]) await create({ name });
    const { body, headers } = await call("POST", "/iam/roles/list", { pagination: { limit: 1, offset: 1 } });
    expect([body.map(({ name }: { name: string }) => name), headers.get("x-total-count")]).toEqual([
      ["b"],
      "3",
    ]);
    const byQuery = await call("GET", "/iam/roles?limit=1&offset=1");
    expect([byQuery.body, byQuery.headers.get("x-total-count")]).toEqual([body, "3"]);
    expect((await call("POST", "/iam/roles/list")).body).toHaveLength(3);
    const past = await call("POST", "/iam/roles/list", { pagination: { offset: 9 } });
    expect([past.body, past.headers.get("x-total-count")]).toEqual([[], "3"]);
    expect(await refused("POST", "/iam/roles/list", { pagination: { limit: 201 } })).toMatchObject({
      paths: ["pagination.limit"],
    });
    expect(await refused("POST", "/iam/roles/list", { limit: 1 })).toMatchObject({ paths: ["limit"] });
  });

  it("of 10,000 roles is one query", async () => {
    await addRoles(10_000);
    await call("POST", "/iam/roles/list", {});
    const queries: string[] = [];
    const { query } = pg.Client.prototype;
    pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
      queries.push(String(given[0]));
      return Reflect.apply(query, this, given);
    } as typeof query;
    try {
      const { body, headers } = await call("POST", "/iam/roles/list", {
        pagination: { limit: 200, offset: 5_000 },
      });
      expect([body.length, headers.get("x-total-count")]).toEqual([200, "10000"]);
      expect(body[0].permissions["apps.read"]).toMatchObject({ name: "apps.read" });
    } finally {
      pg.Client.prototype.query = query;
    }
    expect(queries).toHaveLength(1);
  });
});

it("does not see another organization's roles, nor let them be held", async () => {
  const role = await create({ name: "ours", permissions: ["apps.read"] });
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/iam/roles", role.id, { name: "theirs" });
  const { body, headers } = await stranger("POST", "/iam/roles/list", {});
  expect([body, headers.get("x-total-count")]).toEqual([[], "0"]);
  expect((await call("GET", `/iam/roles/${role.id}`)).body).toEqual(role);
});

it("notes who changed it, and tells the change feed", async () => {
  const role = await create({ name: "a" });
  await call("PUT", `/iam/roles/${role.id}`, { description: "new" });
  await call("DELETE", `/iam/roles/${role.id}`);
  const { db } = api.database;
  const audit = await db
    .selectFrom("audit")
    .selectAll()
    .where("entity", "=", "role")
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  expect(audit.map(({ action, fields }) => [action, fields]).sort()).toEqual([
    ["create", []],
    ["delete", []],
    ["update", ["description"]],
  ]);
  expect(audit.every(({ keyId, entityId }) => keyId !== null && entityId === role.id)).toBe(true);
  const changes = await db
    .selectFrom("changes")
    .select(["kind", "key"])
    .where("kind", "=", "access")
    .execute();
  expect(changes).toEqual(Array(3).fill({ kind: "access", key: role.organizationId }));
});

async function addRoles(count: number): Promise<void> {
  const { db } = api.database;
  const { organizationId } = (await call("GET", "/spaces")).body[0];
  const now = new Date();
  const rows = Array.from({ length: count }, (_, index) => ({
    id: `role_01jc9x2k4v8m3n5p7${String(index).padStart(5, "0")}0`,
    organizationId,
    name: `role ${index}`,
    description: null,
    permissions: ["apps.read", "iam.read"],
    createdAt: now,
    updatedAt: now,
  }));
  for (let at = 0; at < count; at += 1_000) {
    await db
      .insertInto("roles")
      .values(rows.slice(at, at + 1_000))
      .execute();
  }
}
