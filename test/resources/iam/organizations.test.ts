import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("an organization", () => {
  it("is returned with its roles, groups, spaces and members", async () => {
    const { apiKey } = await call.post("/organizations", { name: "shown" });
    const owner = api.as(apiKey.key);
    const role = await owner.post("/iam/roles", { name: "a", permissions: ["apps.read"] });
    const [{ id: memberId, accountId }] = await owner.get("/iam/memberships");
    await owner.put(`/iam/memberships/${memberId}`, { roleIds: [role.id], permissions: ["iam.read"] });
    const group = await owner.post("/iam/groups", { name: "g", members: [accountId] });
    const [organization] = await owner.get("/organizations");
    expect(organization).toMatchObject({ name: "shown", iamId: null, tenantId: null, logoAssetId: null });
    expect(organization.roles).toEqual([role]);
    expect(organization.groups).toEqual([group]);
    expect(organization.spaces).toEqual(await owner.get("/spaces"));
    expect(organization.spaces).toHaveLength(1);
    const [member] = await owner.get("/iam/memberships");
    expect(organization.members).toEqual([{ ...member, organization: null }]);
    expect(organization.members).toMatchObject([{ roles: [role], permissions: [{ name: "iam.read" }] }]);
    expect(organization.groups).toMatchObject([{ members: [{ accountId }] }]);
    expect(await owner.get(`/organizations/${organization.id}`)).toEqual(organization);
  });

  it("is the only organization that its own API keys can list", async () => {
    await call.post("/organizations", { name: "other" });
    const { body, headers } = await call("GET", "/organizations");
    expect([body.length, headers.get("x-total-count")]).toEqual([1, "1"]);
    const past = await call("GET", "/organizations?offset=1");
    expect([past.body, past.headers.get("x-total-count")]).toEqual([[], "1"]);
  });

  it("is changed by a merge patch", async () => {
    const { id, apiKey } = await call.post("/organizations", { name: "patched" });
    const owner = api.as(apiKey.key);
    const path = `/organizations/${id}`;
    expect(await owner.put(path, { tenantId: "t" })).toMatchObject({ name: "patched", tenantId: "t" });
    expect(await owner.put(path, { name: "new", tenantId: null })).toMatchObject({
      name: "new",
      tenantId: null,
    });
    expect(await owner.expectRejection("PUT", path, { name: "" })).toMatchObject({ paths: ["name"] });
    expect(await owner.expectRejection("PUT", path, { members: [] })).toMatchObject({ paths: ["members"] });
  });
});

describe("a new organization", () => {
  it("is created with a space and a first API key with all permissions, which is returned once", async () => {
    const made = await call.post("/organizations", { name: "other", iamId: "iam-1" });
    const { apiKey, ...organization } = made;
    expect(organization).toMatchObject({ name: "other", iamId: "iam-1", groups: [], roles: [] });
    const { key, ...shown } = apiKey;
    expect(shown).toMatchObject({ permissions: ["*"], defaultSpaceId: organization.spaces[0].id });
    const theirs = api.as(key);
    expect(await theirs.get("/organizations")).toEqual([organization]);
    expect(await theirs.get("/iam/api-keys")).toEqual([shown]);
    await theirs.post("/iam/roles", { name: "a", permissions: ["*"] });
    expect((await call("GET", `/organizations/${organization.id}`)).status).toBe(404);
  });

  it("can be created only by callers of the operator's organization", async () => {
    const { apiKey } = await call.post("/organizations", { name: "tenant" });
    expect(
      await api.as(apiKey.key).expectRejection("POST", "/organizations", { name: "mine" }),
    ).toMatchObject({
      status: 403,
      code: "permission_denied",
    });
  });

  it("requires the permission organizations.write", async () => {
    const reader = api.as(await api.keyWith("organizations.read"));
    expect(await reader.expectRejection("POST", "/organizations", { name: "other" })).toMatchObject({
      status: 403,
      code: "permission_denied",
    });
  });
});

describe("deleting an organization", () => {
  it("also deletes its API keys, accounts, roles, groups and spaces", async () => {
    const made = await call.post("/organizations", { name: "other" });
    const theirs = api.as(made.apiKey.key);
    const role = await theirs.post("/iam/roles", { name: "a" });
    const key = await theirs.post("/iam/api-keys", { name: "k", roleIds: [role.id] });
    await theirs.post("/iam/groups", { name: "g", members: [key.accountId] });
    await theirs.post("/iam/identities", { accountId: key.accountId, identifier: "ada" });
    expect(await theirs.delete(`/organizations/${made.id}`)).toEqual({ id: made.id });
    expect((await theirs("GET", "/organizations")).status).toBe(401);
    expect((await api.as(key.key)("GET", "/organizations")).status).toBe(401);
    const { db } = api.database;
    for (const table of ["roles", "spaces", "groups", "memberships", "identities", "accounts"] as const) {
      const left = await db.selectFrom(table).select("id").where("organizationId", "=", made.id).execute();
      expect(left).toEqual([]);
    }
  });

  it("is rejected while the organization contains resources of any other kind", async () => {
    const made = await call.post("/organizations", { name: "other" });
    const theirs = api.as(made.apiKey.key);
    const remove = async () => (await theirs("DELETE", `/organizations/${made.id}`)).status;
    const blueprint = await theirs.post("/blueprints", { title: "b" });
    const app = await theirs.post("/apps/install", { blueprintId: blueprint.id });
    expect(await remove()).toBe(409);
    await theirs.delete(`/apps/${app.id}`);
    expect(await remove()).toBe(409);
    expect(await theirs.get("/organizations")).toHaveLength(1);
    await theirs.delete(`/blueprints/${blueprint.id}`);
    for (const [path, body] of [
      ["/stores/artifacts", { kind: "agent", title: "a" }],
      ["/telephony/sip-trunks", { name: "t", sipProvider: "sip_provider_1" }],
      ["/states", { name: "s" }],
      ["/forms", { title: "f" }],
    ] as const) {
      const { id } = await theirs.post(path, body);
      expect([path, await remove()]).toEqual([path, 409]);
      await theirs.delete(`${path}/${id}`);
    }
    expect(await remove()).toBe(200);
  });

  it("is rejected for the organization that the gateway created at its first start", async () => {
    const [first] = await call.get("/organizations");
    expect(await call.expectRejection("DELETE", `/organizations/${first.id}`)).toMatchObject({ status: 409 });
    expect(await call.get("/organizations")).toEqual([first]);
  });
});
