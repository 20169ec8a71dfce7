import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

describe("an account", () => {
  it("is created as a member without permissions, and returned with its identities and memberships", async () => {
    const account = await call.post("/iam/accounts", {
      name: "Ada",
      firstName: "Ada",
      platformIdentityId: "p-1",
    });
    expect(account).toMatchObject({
      name: "Ada",
      firstName: "Ada",
      lastName: null,
      language: null,
      platformIdentityId: "p-1",
      isService: false,
      status: "pending",
      identities: [],
      memberships: [{ accountId: account.id, organization: null, permissions: [], roles: [] }],
    });
    expect(account).not.toHaveProperty("organizationId");
    const identity = await call.post("/iam/identities", { accountId: account.id, identifier: "shown" });
    const shown = await call.get(`/iam/accounts/${account.id}`);
    expect(shown.identities).toEqual([{ ...identity, account: null }]);
    expect(await call.get("/iam/accounts?limit=200")).toContainEqual(shown);
  });

  it("is changed by a merge patch, but a person cannot become a service account or the reverse", async () => {
    const { id } = await call.post("/iam/accounts", { name: "Ada", language: "en" });
    const put = (patch: object) => call.put(`/iam/accounts/${id}`, patch);
    expect(await put({ lastName: "Lovelace" })).toMatchObject({ lastName: "Lovelace", language: "en" });
    expect(await put({ language: null })).toMatchObject({ lastName: "Lovelace", language: null });
    expect(await call.expectRejection("PUT", `/iam/accounts/${id}`, { isService: true })).toMatchObject({
      paths: ["isService"],
    });
  });

  it("changes its status from pending to active to disabled, without skipping a status or going back", async () => {
    const { id } = await call.post("/iam/accounts", { name: "Ada" });
    const become = async (status: string) => (await call("PUT", `/iam/accounts/${id}`, { status })).status;
    expect(await become("disabled")).toBe(409);
    expect(await become("active")).toBe(200);
    expect(await become("active")).toBe(200);
    expect(await become("pending")).toBe(409);
    expect(await become("disabled")).toBe(200);
    expect(await become("active")).toBe(409);
    const disabled = { name: "Eve", status: "disabled" };
    expect(await call.expectRejection("POST", "/iam/accounts", disabled)).toMatchObject({
      status: 400,
      paths: ["status"],
    });
  });

  it("can no longer use its API keys after the account is disabled", async () => {
    const { key, accountId } = await call.post("/iam/api-keys", { name: "k", permissions: ["iam.read"] });
    const theirs = api.as(key);
    expect((await theirs("GET", "/iam/accounts")).status).toBe(200);
    await call.put(`/iam/accounts/${accountId}`, { status: "disabled" });
    expect((await theirs("GET", "/iam/accounts")).status).toBe(401);
  });

  it("cannot be deleted while it has API keys, and is deleted with its identities and its memberships in groups", async () => {
    const { id: keyId, accountId } = await call.post("/iam/api-keys", { name: "k" });
    const path = `/iam/accounts/${accountId}`;
    const group = await call.post("/iam/groups", { name: "g", members: [accountId] });
    const identity = await call.post("/iam/identities", { accountId, identifier: "deleted" });
    expect(await call.expectRejection("DELETE", path)).toMatchObject({ status: 409, code: "conflict" });
    await call.delete(`/iam/api-keys/${keyId}`);
    expect(await call.delete(path)).toEqual({ id: accountId });
    expect((await call("GET", path)).status).toBe(404);
    expect(await call.get(`/iam/groups/${group.id}`)).toMatchObject({ members: [] });
    expect((await call("GET", `/iam/identities/${identity.id}`)).status).toBe(404);
  });

  it("cannot be deleted if the gateway created it at its first start", async () => {
    const [{ id }] = await call.get("/iam/accounts");
    expect(await call.expectRejection("DELETE", `/iam/accounts/${id}`)).toMatchObject({ status: 409 });
    expect((await call("GET", `/iam/accounts/${id}`)).status).toBe(200);
  });

  it("stays visible to its creator after losing its membership, and can become a member again", async () => {
    const { id, memberships } = await call.post("/iam/accounts", { name: "Ada" });
    await call.delete(`/iam/memberships/${memberships[0].id}`);
    expect(await call.get(`/iam/accounts/${id}`)).toMatchObject({ memberships: [] });
    await call.post("/iam/memberships", { accountId: id });
    expect((await call.get(`/iam/accounts/${id}`)).memberships).toHaveLength(1);
  });

  it("can be read but not changed in a second organization, and shows only its membership of that organization", async () => {
    const made = await call.post("/organizations", { name: "second" });
    const theirs = api.as(made.apiKey.key);
    const account = await call.post("/iam/accounts", { name: "guest" });
    await call.post("/iam/identities", { accountId: account.id, identifier: "guest" });
    const now = new Date();
    const membership = {
      id: account.memberships[0].id.replace(/.$/, "1"),
      accountId: account.id,
      organizationId: made.id,
      role: 0,
      permissions: [],
      roleIds: [],
      createdAt: now,
      updatedAt: now,
    };
    await api.database.db.insertInto("memberships").values(membership).execute();
    const path = `/iam/accounts/${account.id}`;
    const seen = await theirs.get(path);
    expect(seen).toMatchObject({ name: "guest", identities: [], memberships: [{ organizationId: made.id }] });
    expect(seen.memberships).toHaveLength(1);
    expect((await call.get(path)).memberships).toHaveLength(1);
    expect(await theirs.expectRejection("PUT", path, { status: "disabled" })).toMatchObject({ status: 403 });
    expect(await theirs.expectRejection("DELETE", path)).toMatchObject({ status: 403 });
  });
});
