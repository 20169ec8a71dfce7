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

const post = async (path: string, body: object, as: Call = call) => (await as("POST", path, body)).body;
const get = async (path: string) => (await call("GET", path)).body;

describe("an account", () => {
  it("is made as a member that may nothing, and shown whole", async () => {
    const account = await post("/iam/accounts", { name: "Ada", firstName: "Ada", platformIdentityId: "p-1" });
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
    const identity = await post("/iam/identities", { accountId: account.id, identifier: "ada" });
    const shown = await get(`/iam/accounts/${account.id}`);
    expect(shown.identities).toEqual([{ ...identity, account: null }]);
    expect((await get("/iam/accounts")).at(-1)).toEqual(shown);
  });

  it("is changed by a merge patch", async () => {
    const { id } = await post("/iam/accounts", { name: "Ada", language: "en" });
    const put = async (patch: object) => (await call("PUT", `/iam/accounts/${id}`, patch)).body;
    expect(await put({ lastName: "Lovelace" })).toMatchObject({ lastName: "Lovelace", language: "en" });
    expect(await put({ language: null })).toMatchObject({ lastName: "Lovelace", language: null });
    expect(await put({ isService: true })).toMatchObject({ details: [{ path: "isService" }] });
    expect(await put({ status: "gone", name: null })).toMatchObject({ code: "invalid_parameters" });
  });

  it("goes from pending to active to disabled, step by step, and never back", async () => {
    const { id } = await post("/iam/accounts", { name: "Ada" });
    const become = async (status: string) => (await call("PUT", `/iam/accounts/${id}`, { status })).status;
    expect(await become("disabled")).toBe(409);
    expect(await become("active")).toBe(200);
    expect(await become("active")).toBe(200);
    expect(await become("pending")).toBe(409);
    expect(await become("disabled")).toBe(200);
    expect(await become("active")).toBe(409);
    expect((await call("POST", "/iam/accounts", { name: "Eve", status: "disabled" })).status).toBe(400);
  });

  it("lets nobody in by its keys once it is disabled", async () => {
    const { key, accountId } = await post("/iam/api-keys", { name: "k", permissions: ["iam.read"] });
    const theirs = api.as(key);
    expect((await theirs("GET", "/iam/accounts")).status).toBe(200);
    await call("PUT", `/iam/accounts/${accountId}`, { status: "disabled" });
    expect((await theirs("GET", "/iam/accounts")).status).toBe(401);
  });

  it("stays while it has API keys, and takes the rest with it", async () => {
    const key = await post("/iam/api-keys", { name: "k" });
    const path = `/iam/accounts/${key.accountId}`;
    const group = await post("/iam/groups", { name: "g", members: [key.accountId] });
    const identity = await post("/iam/identities", { accountId: key.accountId, identifier: "ada" });
    expect((await call("DELETE", path)).body).toMatchObject({ code: "conflict" });
    await call("DELETE", `/iam/api-keys/${key.id}`);
    expect((await call("DELETE", path)).body).toEqual({ id: key.accountId });
    expect((await call("GET", path)).status).toBe(404);
    expect(await get(`/iam/groups/${group.id}`)).toMatchObject({ members: [] });
    expect((await call("GET", `/iam/identities/${identity.id}`)).status).toBe(404);
  });

  it("of the first start stays", async () => {
    const [{ id }] = await get("/iam/accounts");
    expect((await call("DELETE", `/iam/accounts/${id}`)).status).toBe(409);
    expect((await call("GET", `/iam/accounts/${id}`)).status).toBe(200);
  });

  it("is still seen by who made it when it is no member, and can become one again", async () => {
    const account = await post("/iam/accounts", { name: "Ada" });
    await call("DELETE", `/iam/memberships/${account.memberships[0].id}`);
    expect(await get(`/iam/accounts/${account.id}`)).toMatchObject({ memberships: [] });
    await post("/iam/memberships", { accountId: account.id });
    expect((await get(`/iam/accounts/${account.id}`)).memberships).toHaveLength(1);
  });
});

describe("across organizations", () => {
  it("is hidden from those that it is no member of", async () => {
    const account = await post("/iam/accounts", { name: "ours" });
    const stranger = api.as(await api.strangerKey());
    await expectHidden(stranger, "/iam/accounts", account.id, { name: "theirs" });
    expect((await stranger("GET", "/iam/accounts")).headers.get("x-total-count")).toBe("1");
  });

  it("is seen by those that it is a member of, who see nothing of the others, nor change it", async () => {
    const made = await post("/organizations", { name: "other" });
    const theirs = api.as(made.apiKey.key);
    const account = await post("/iam/accounts", { name: "guest" });
    await post("/iam/identities", { accountId: account.id, identifier: "guest" });
    const now = new Date();
    const membership = {
      ...{ id: account.memberships[0].id.replace(/.$/, "1"), accountId: account.id },
      ...{ organizationId: made.id, createdAt: now, updatedAt: now },
    };
    await api.database.db.insertInto("memberships").values(membership).execute();
    const seen = (await theirs("GET", `/iam/accounts/${account.id}`)).body;
    expect(seen).toMatchObject({ name: "guest", identities: [], memberships: [{ organizationId: made.id }] });
    expect(seen.memberships).toHaveLength(1);
    expect((await get(`/iam/accounts/${account.id}`)).memberships).toHaveLength(1);
    expect((await theirs("PUT", `/iam/accounts/${account.id}`, { status: "disabled" })).status).toBe(403);
    expect((await theirs("DELETE", `/iam/accounts/${account.id}`)).status).toBe(403);
  });
});
