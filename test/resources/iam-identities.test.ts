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

const ISSUER = "https://id.example.com";
const addAccount = () => post("/iam/accounts", { name: "Ada", status: "active" });

describe("an identity", () => {
  it("is made, shown with its account, listed, changed and deleted", async () => {
    const account = await addAccount();
    const input = {
      accountId: account.id,
      identifier: "ada",
      email: "ada@example.com",
      info: { b: 1, a: [null] },
    };
    const identity = await post("/iam/identities", input);
    expect(identity).toMatchObject({
      ...input,
      id: expect.stringMatching(/^idn_/),
      account: { ...account, identities: [], memberships: [] },
      provider: "org",
      phone: null,
      organizationId: account.memberships[0].organizationId,
    });
    expect(Object.keys(identity.info)).toEqual(["b", "a"]);
    expect(await get(`/iam/identities/${identity.id}`)).toEqual(identity);
    expect(await get("/iam/identities")).toEqual([identity]);
    const put = async (patch: object) => (await call("PUT", `/iam/identities/${identity.id}`, patch)).body;
    expect(await put({ phone: "+1", email: null })).toMatchObject({
      phone: "+1",
      email: null,
      identifier: "ada",
    });
    expect(await put({ info: { a: null, c: 2 } })).toMatchObject({ info: { b: 1, c: 2 } });
    expect(await put({ info: null })).toMatchObject({ info: null });
    expect(await put({ accountId: account.id })).toMatchObject({ details: [{ path: "accountId" }] });
    expect((await call("DELETE", `/iam/identities/${identity.id}`)).body).toEqual({ id: identity.id });
    expect((await call("GET", `/iam/identities/${identity.id}`)).status).toBe(404);
  });

  it("is refused with each field that does not fit", async () => {
    expect(
      await post("/iam/identities", { accountId: "x", email: "nobody", info: "i".repeat(20_000) }),
    ).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "identifier" }, { path: "email" }, { path: "info" }],
    });
  });

  it("is one person's: everywhere for an issuer, in the organization for its own naming", async () => {
    const { id: accountId } = await addAccount();
    const other = await post("/organizations", { name: "other" });
    const theirs = api.as(other.apiKey.key);
    const they = { accountId: other.apiKey.accountId };
    const status = async (body: object, as: Call = call) =>
      (await as("POST", "/iam/identities", body)).status;
    expect(await status({ accountId, identifier: "ada" })).toBe(200);
    expect(await status({ accountId, identifier: "ada" })).toBe(409);
    expect(await status({ ...they, identifier: "ada" }, theirs)).toBe(200);
    expect(await status({ accountId, identifier: "ada", provider: ISSUER })).toBe(200);
    expect(await status({ ...they, identifier: "ada", provider: ISSUER }, theirs)).toBe(409);
  });

  it("lends no account that may do more than the caller", async () => {
    const account = await addAccount();
    const role = await post("/iam/roles", { name: "a", permissions: ["apps.write"] });
    await call("PUT", `/iam/memberships/${account.memberships[0].id}`, { roleIds: [role.id] });
    const limited = api.as(await api.keyWith("iam.write"));
    const body = { accountId: account.id, provider: ISSUER, identifier: "mallory" };
    expect((await limited("POST", "/iam/identities", body)).status).toBe(403);
    const { id } = await post("/iam/identities", { ...body, identifier: "ada" });
    const path = `/iam/identities/${id}`;
    expect((await limited("PUT", path, { identifier: "mallory" })).status).toBe(403);
    expect((await limited("PUT", path, { phone: "+1" })).status).toBe(200);
    const strong = api.as(await api.keyWith("iam.write", "apps.write"));
    expect((await strong("PUT", path, { identifier: "eve" })).status).toBe(200);
  });
});

it("is hidden from other organizations, whose accounts are unknown to it", async () => {
  const { id: accountId } = await addAccount();
  const identity = await post("/iam/identities", { accountId, identifier: "ada" });
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/iam/identities", identity.id, { phone: "+1" });
  await expectUnknownInside(stranger, "POST", "/iam/identities", accountId, (id) => ({
    accountId: id,
    identifier: "eve",
  }));
  expect((await stranger("GET", "/iam/identities")).body).toEqual([]);
});
