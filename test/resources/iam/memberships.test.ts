import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

/** Creates an account that is not a member of the organization. Returns its id. */
async function addOutsider(): Promise<string> {
  const { id, memberships } = await call.post("/iam/accounts", { name: "Ada" });
  await call.delete(`/iam/memberships/${memberships[0].id}`);
  return id;
}

describe("a membership", () => {
  it("is returned with its organization, permissions and roles", async () => {
    const role = await call.post("/iam/roles", { name: "shown", permissions: ["apps.read"] });
    const accountId = await addOutsider();
    const input = { accountId, role: 2, roleIds: [role.id], permissions: ["iam.read"] };
    const membership = await call.post("/iam/memberships", input);
    const [{ roles, members, spaces, groups, ...organization }] = await call.get("/organizations");
    expect(membership).toMatchObject({
      id: expect.stringMatching(/^mem_/),
      accountId,
      organizationId: organization.id,
      organization,
      permissions: [{ name: "iam.read", organizationId: organization.id }],
      role: 2,
      roles: [role],
    });
    // The embedded organization omits these lists instead of showing them as empty.
    expect([roles.length, members.length, spaces.length, groups]).not.toContain(0);
    expect(membership.organization).toEqual(organization);
    expect(await call.get(`/iam/accounts/${accountId}`)).toMatchObject({
      memberships: [{ permissions: [{ name: "iam.read" }], roles: [role] }],
    });
    expect(await call.get(`/iam/memberships/${membership.id}`)).toEqual(membership);
    expect(await call.get("/iam/memberships?limit=200")).toContainEqual(membership);
  });

  it("can exist only once for each account", async () => {
    const accountId = await addOutsider();
    await call.post("/iam/memberships", { accountId });
    expect(await call.expectRejection("POST", "/iam/memberships", { accountId })).toMatchObject({
      status: 409,
      code: "conflict",
    });
  });

  it("is changed by a merge patch, and can be deleted without deleting its account", async () => {
    const role = await call.post("/iam/roles", { name: "added" });
    const body = { accountId: await addOutsider(), role: 1 };
    const { id, accountId } = await call.post("/iam/memberships", body);
    const path = `/iam/memberships/${id}`;
    expect(await call.put(path, { roleIds: [role.id] })).toMatchObject({ role: 1, roles: [role] });
    expect(await call.put(path, { permissions: ["apps.read"], role: 0 })).toMatchObject({
      role: 0,
      roles: [role],
      permissions: [{ name: "apps.read" }],
    });
    expect(await call.expectRejection("PUT", path, { accountId })).toMatchObject({ paths: ["accountId"] });
    expect(await call.expectRejection("PUT", path, { role: null })).toMatchObject({
      status: 400,
      paths: ["role"],
    });
    expect(await call.delete(path)).toEqual({ id });
    expect((await call("GET", path)).status).toBe(404);
    expect((await call("GET", `/iam/accounts/${accountId}`)).status).toBe(200);
  });

  it("is rejected if its role is a negative number, or if one of its permissions does not exist", async () => {
    const accountId = await addOutsider();
    expect(await call.expectRejection("POST", "/iam/memberships", { accountId, role: -1 })).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["role"],
    });
    const permissions = ["*", "all"];
    expect(await call.expectRejection("POST", "/iam/memberships", { accountId, permissions })).toMatchObject({
      paths: ["permissions[1]"],
    });
  });

  it("cannot grant permissions that the caller lacks", async () => {
    const role = await call.post("/iam/roles", { name: "writers", permissions: ["apps.write"] });
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const accountId = await addOutsider();
    for (const grant of [{ permissions: ["apps.write"] }, { roleIds: [role.id] }, { permissions: ["*"] }]) {
      expect(
        await limited.expectRejection("POST", "/iam/memberships", { accountId, ...grant }),
      ).toMatchObject({
        status: 403,
      });
    }
    const { id } = await call.post("/iam/memberships", { accountId, permissions: ["apps.write"] });
    const path = `/iam/memberships/${id}`;
    expect(await limited.expectRejection("PUT", path, { roleIds: [role.id] })).toMatchObject({ status: 403 });
    await limited.put(path, { role: 3 });
    await limited.put(path, { permissions: ["apps.read", "apps.write"] });
  });
});
