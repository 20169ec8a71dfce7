import pg from "pg";
import { describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

/** Creates an organization without roles, for tests that list roles. */
const newOrganization = async (): Promise<Caller> => api.as(await api.createForeignKey());
const create = (role: object, as: Caller = call) => as.post("/iam/roles", role);

describe("a role", () => {
  it("is returned with its permissions, each as an entity of the organization", async () => {
    const role = await create({ name: "Operators", permissions: ["iam.read", "apps.read", "apps.read"] });
    const listed = await call.get("/iam/permissions");
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
    expect(await call.get(`/iam/roles/${role.id}`)).toEqual(role);
    expect(await create({ name: "Nothing" })).toMatchObject({ permissions: {} });
  });

  it("is changed by a merge patch that replaces arrays, clears fields with null and keeps absent fields", async () => {
    const { id } = await create({ name: "patched", description: "first", permissions: ["apps.read"] });
    const put = (patch: object) => call.put(`/iam/roles/${id}`, patch);
    expect(await put({ name: "renamed" })).toMatchObject({ name: "renamed", description: "first" });
    expect(Object.keys((await put({ permissions: ["apps.write"] })).permissions)).toEqual(["apps.write"]);
    expect(await put({ description: null, permissions: [] })).toMatchObject({
      name: "renamed",
      description: null,
      permissions: {},
    });
    expect(
      await call.expectRejection("PUT", `/iam/roles/${id}`, { name: null, permissions: null }),
    ).toMatchObject({
      paths: ["name", "permissions"],
    });
  });

  it("can no longer be read after it is deleted", async () => {
    const { id } = await create({ name: "deleted" });
    expect(await call.delete(`/iam/roles/${id}`)).toEqual({ id });
    expect((await call("GET", `/iam/roles/${id}`)).status).toBe(404);
    expect((await call("DELETE", `/iam/roles/${id}`)).status).toBe(404);
  });

  it("is rejected with an empty name, or with a permission that does not exist", async () => {
    expect(await call.expectRejection("POST", "/iam/roles", { name: "" })).toMatchObject({ paths: ["name"] });
    const permissions = ["apps.fly", "apps.read"];
    expect(await call.expectRejection("POST", "/iam/roles", { name: "a", permissions })).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["permissions[0]"],
    });
  });

  it("must have a name that is unique in its organization, but other organizations may use that name too", async () => {
    const { id } = await create({ name: "unique" });
    await create({ name: "other" });
    expect(await call.expectRejection("POST", "/iam/roles", { name: "unique" })).toMatchObject({
      status: 409,
    });
    expect(await call.expectRejection("PUT", `/iam/roles/${id}`, { name: "other" })).toMatchObject({
      status: 409,
    });
    expect(await create({ name: "unique" }, await newOrganization())).toMatchObject({ name: "unique" });
  });

  it("cannot be deleted while an API key or a member has the role", async () => {
    const { id } = await create({ name: "held" });
    const key = await call.post("/iam/api-keys", { name: "k", roleIds: [id] });
    const [member] = await call.get("/iam/memberships");
    expect(await call.expectRejection("DELETE", `/iam/roles/${id}`)).toMatchObject({ status: 409 });
    await call.put(`/iam/memberships/${member.id}`, { roleIds: [id] });
    await call.delete(`/iam/api-keys/${key.id}`);
    expect(await call.expectRejection("DELETE", `/iam/roles/${id}`)).toMatchObject({ status: 409 });
    await call.put(`/iam/memberships/${member.id}`, { roleIds: [] });
    await call.delete(`/iam/roles/${id}`);
  });
});

describe("a caller with few permissions", () => {
  it("cannot create a role with permissions that the caller lacks, or add or remove such permissions on a role", async () => {
    const limited = api.as(await api.keyWith("iam.write", "iam.read", "apps.read"));
    const denied = { status: 403, code: "permission_denied" };
    for (const permissions of [["apps.write"], ["*"]]) {
      const body = { name: "denied", permissions };
      expect(await limited.expectRejection("POST", "/iam/roles", body)).toMatchObject(denied);
    }
    const { id } = await create({ name: "strong", permissions: ["apps.write"] });
    const path = `/iam/roles/${id}`;
    const more = { permissions: ["apps.write", "blueprints.write"] };
    expect(await limited.expectRejection("PUT", path, more)).toMatchObject(denied);
    await limited.put(path, { description: "new" });
    expect(await limited.expectRejection("PUT", path, { permissions: ["apps.read"] })).toMatchObject(denied);
    await limited.put(path, { permissions: ["apps.read", "apps.write"] });
    await limited.put(path, { permissions: ["apps.write"] });
    await call.put(path, { permissions: [] });
    // A caller that lacks a permission cannot restore it after another caller removed it.
    expect(await limited.expectRejection("PUT", path, { permissions: ["apps.write"] })).toMatchObject(denied);
  });

  it("needs the permission iam.read to list roles, and the permission iam.write to create one", async () => {
    const reader = api.as(await api.keyWith("iam.read"));
    await reader.post("/iam/roles/list");
    expect(await reader.expectRejection("POST", "/iam/roles", { name: "a" })).toMatchObject({ status: 403 });
    const other = api.as(await api.keyWith("apps.read"));
    expect(await other.expectRejection("POST", "/iam/roles/list", {})).toMatchObject({ status: 403 });
  });
});

describe("the list of roles", () => {
  it("can be paginated with parameters in the request body or in the query", async () => {
    const owner = await newOrganization();
    for (const name of ["a", "b", "c"]) await create({ name }, owner);
    const { body, headers } = await owner("POST", "/iam/roles/list", { pagination: { limit: 1, offset: 1 } });
    expect([body.map(({ name }: { name: string }) => name), headers.get("x-total-count")]).toEqual([
      ["b"],
      "3",
    ]);
    const byQuery = await owner("GET", "/iam/roles?limit=1&offset=1");
    expect([byQuery.body, byQuery.headers.get("x-total-count")]).toEqual([body, "3"]);
    expect((await owner("POST", "/iam/roles/list")).body).toHaveLength(3);
    const past = await owner("POST", "/iam/roles/list", { pagination: { offset: 9 } });
    expect([past.body, past.headers.get("x-total-count")]).toEqual([[], "3"]);
    const tooMany = { pagination: { limit: 201 } };
    expect(await owner.expectRejection("POST", "/iam/roles/list", tooMany)).toMatchObject({
      paths: ["pagination.limit"],
    });
  });

  it("is read with one database query, regardless of the number of roles", async () => {
    const owner = await newOrganization();
    await addRoles(owner, 1_000);
    const page = { pagination: { limit: 200, offset: 500 } };
    await owner.post("/iam/roles/list", page);
    const queries: string[] = [];
    const { query } = pg.Client.prototype;
    pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
      queries.push(String(given[0]));
      return Reflect.apply(query, this, given);
    } as typeof query;
    try {
      const { body, headers } = await owner("POST", "/iam/roles/list", page);
      expect([body.length, headers.get("x-total-count")]).toEqual([200, "1000"]);
      expect(body[0].permissions["apps.read"]).toMatchObject({ name: "apps.read" });
    } finally {
      pg.Client.prototype.query = query;
    }
    expect(queries).toHaveLength(1);
  });
});

it("each change of a role is recorded in the audit log and in the change feed", async () => {
  const owner = await newOrganization();
  const role = await create({ name: "noted" }, owner);
  await owner.put(`/iam/roles/${role.id}`, { description: "new" });
  await owner.delete(`/iam/roles/${role.id}`);
  const { db } = api.database;
  const audit = await db
    .selectFrom("audit")
    .selectAll()
    .where("entityId", "=", role.id)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  expect(audit.map(({ action, fields }) => [action, fields]).sort()).toEqual([
    ["create", []],
    ["delete", []],
    ["update", ["description"]],
  ]);
  expect(audit.every(({ keyId, entity }) => keyId !== null && entity === "role")).toBe(true);
  const changes = await db
    .selectFrom("changes")
    .select(["kind", "key"])
    .where("key", "=", role.organizationId)
    .execute();
  expect(changes).toEqual(Array(3).fill({ kind: "access", key: role.organizationId }));
});

async function addRoles(owner: Caller, count: number): Promise<void> {
  const { db } = api.database;
  const [{ organizationId }] = await owner.get("/spaces");
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
  await db.insertInto("roles").values(rows).execute();
}
