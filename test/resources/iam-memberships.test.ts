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

/** An account that is no member. */
async function addOutsider(): Promise<string> {
  const { id, memberships } = await post("/iam/accounts", { name: "Ada" });
  await call("DELETE", `/iam/memberships/${memberships[0].id}`);
  return id;
}

describe("a membership", () => {
  it("is shown whole: organization, permissions and roles", async () => {
    const role = await post("/iam/roles", { name: "a", permissions: ["apps.read"] });
    const accountId = await addOutsider();
    const input = { accountId, role: 2, roleIds: [role.id], permissions: ["iam.read"] };
    const membership = await post("/iam/memberships", input);
    const [{ roles, members, spaces, groups, ...organization }] = await get("/organizations");
    expect(membership).toMatchObject({
      id: expect.stringMatching(/^mem_/),
      accountId,
      organizationId: organization.id,
      organization: { ...organization, roles: [], members: [], spaces: [], groups: [] },
      permissions: [{ name: "iam.read", organizationId: organization.id }],
      role: 2,
      roles: [role],
    });
    expect(await get(`/iam/memberships/${membership.id}`)).toEqual(membership);
    expect(await get("/iam/memberships?offset=1")).toEqual([membership]);
  });

  it("is one for each account", async () => {
    const accountId = await addOutsider();
    expect((await call("POST", "/iam/memberships", { accountId })).status).toBe(200);
    expect((await call("POST", "/iam/memberships", { accountId })).body).toMatchObject({ code: "conflict" });
  });

  it("is changed by a merge patch, and ends with the membership alone", async () => {
    const role = await post("/iam/roles", { name: "a" });
    const { id, accountId } = await post("/iam/memberships", { accountId: await addOutsider(), role: 1 });
    const put = async (patch: object) => (await call("PUT", `/iam/memberships/${id}`, patch)).body;
    expect(await put({ roleIds: [role.id] })).toMatchObject({ role: 1, roles: [role] });
    expect(await put({ permissions: ["apps.read"], role: null })).toMatchObject({
      role: 0,
      roles: [role],
      permissions: [{ name: "apps.read" }],
    });
    expect(await put({ accountId })).toMatchObject({ details: [{ path: "accountId" }] });
    expect((await call("DELETE", `/iam/memberships/${id}`)).body).toEqual({ id });
    expect((await call("GET", `/iam/memberships/${id}`)).status).toBe(404);
    expect((await call("GET", `/iam/accounts/${accountId}`)).status).toBe(200);
  });

  it("is refused with each field that does not fit", async () => {
    expect(await post("/iam/memberships", { role: -1 })).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "accountId" }, { path: "role" }],
    });
    const accountId = await addOutsider();
    expect(await post("/iam/memberships", { accountId, permissions: ["*", "all"] })).toMatchObject({
      details: [{ path: "permissions[1]" }],
    });
  });

  it("grants nothing that the caller does not hold", async () => {
    const role = await post("/iam/roles", { name: "a", permissions: ["apps.write"] });
    const limited = api.as(await api.keyWith("iam.write", "apps.read"));
    const accountId = await addOutsider();
    for (const grant of [{ permissions: ["apps.write"] }, { roleIds: [role.id] }, { permissions: ["*"] }]) {
      expect((await limited("POST", "/iam/memberships", { accountId, ...grant })).status).toBe(403);
    }
    const { id } = await post("/iam/memberships", { accountId, permissions: ["apps.write"] }, call);
    expect((await limited("PUT", `/iam/memberships/${id}`, { roleIds: [role.id] })).status).toBe(403);
    expect((await limited("PUT", `/iam/memberships/${id}`, { role: 3 })).status).toBe(200);
    const { status } = await limited("PUT", `/iam/memberships/${id}`, {
      permissions: ["apps.read", "apps.write"],
    });
    expect(status).toBe(200);
  });
});

it("is hidden from other organizations, whose accounts and roles are unknown to it", async () => {
  const role = await post("/iam/roles", { name: "a" });
  const [ours] = await get("/iam/memberships");
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/iam/memberships", ours.id, { role: 1 });
  const [theirs] = (await stranger("GET", "/iam/memberships")).body;
  const path = `/iam/memberships/${theirs.id}`;
  await expectUnknownInside(stranger, "PUT", path, role.id, (id) => ({ roleIds: [id] }));
  const outsider = await addOutsider();
  await expectUnknownInside(stranger, "POST", "/iam/memberships", outsider, (id) => ({ accountId: id }));
  expect((await stranger("GET", "/iam/memberships")).headers.get("x-total-count")).toBe("1");
});
