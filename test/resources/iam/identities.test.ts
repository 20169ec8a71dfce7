import { describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const ISSUER = "https://id.example.com";
const addAccount = () => call.post("/iam/accounts", { name: "Ada", status: "active" });

describe("an identity", () => {
  it("can be created, read with its account, listed, changed and deleted", async () => {
    const { identities: _, memberships, ...account } = await addAccount();
    const input = {
      accountId: account.id,
      identifier: "made",
      email: "ada@example.com",
      info: { b: 1, a: [null] },
    };
    const identity = await call.post("/iam/identities", input);
    expect(identity).toMatchObject({
      ...input,
      id: expect.stringMatching(/^idn_/),
      account,
      provider: "org",
      phone: null,
      organizationId: memberships[0].organizationId,
    });
    expect(identity.account).toEqual(account);
    expect(Object.keys(identity.info)).toEqual(["b", "a"]);
    const path = `/iam/identities/${identity.id}`;
    expect(await call.get(path)).toEqual(identity);
    expect(await call.get("/iam/identities")).toEqual([identity]);
    expect(await call.put(path, { phone: "+1", email: null })).toMatchObject({
      phone: "+1",
      email: null,
      identifier: "made",
    });
    expect(await call.put(path, { info: { a: null, c: 2 } })).toMatchObject({ info: { a: null, c: 2 } });
    expect(await call.put(path, { info: null })).toMatchObject({ info: null });
    expect(await call.expectRejection("PUT", path, { accountId: account.id })).toMatchObject({
      paths: ["accountId"],
    });
    expect(await call.delete(path)).toEqual({ id: identity.id });
    expect((await call("GET", path)).status).toBe(404);
  });

  it("is rejected if its email address is invalid or its info is too large", async () => {
    const { id: accountId } = await addAccount();
    const body = { accountId, identifier: "refused", email: "nobody", info: "i".repeat(20_000) };
    expect(await call.expectRejection("POST", "/iam/identities", body)).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["email", "info"],
    });
  });

  it("must be unique in its organization, but may exist in several organizations", async () => {
    const { id: accountId } = await addAccount();
    const other = await call.post("/organizations", { name: "other" });
    const theirs = api.as(other.apiKey.key);
    const they = { accountId: other.apiKey.accountId };
    const status = async (body: object, as: Caller = call) =>
      (await as("POST", "/iam/identities", body)).status;
    expect(await status({ accountId, identifier: "once" })).toBe(200);
    expect(await status({ accountId, identifier: "once" })).toBe(409);
    expect(await status({ ...they, identifier: "once" }, theirs)).toBe(200);
    expect(await status({ ...they, identifier: "once", provider: ISSUER }, theirs)).toBe(200);
    expect(await status({ accountId, identifier: "once", provider: ISSUER })).toBe(200);
    expect(await status({ accountId, identifier: "once", provider: ISSUER })).toBe(409);
  });

  it("cannot be added to an account with permissions that the caller lacks", async () => {
    const account = await addAccount();
    const role = await call.post("/iam/roles", { name: "a", permissions: ["apps.write"] });
    await call.put(`/iam/memberships/${account.memberships[0].id}`, { roleIds: [role.id] });
    const limited = api.as(await api.keyWith("iam.write"));
    const body = { accountId: account.id, provider: ISSUER, identifier: "mallory" };
    expect(await limited.expectRejection("POST", "/iam/identities", body)).toMatchObject({ status: 403 });
    const { id } = await call.post("/iam/identities", { ...body, identifier: "lent" });
    const path = `/iam/identities/${id}`;
    expect(await limited.expectRejection("PUT", path, { identifier: "mallory" })).toMatchObject({
      status: 403,
    });
    await limited.put(path, { phone: "+1" });
  });

  it("cannot be added to another account that is already in use, except by a caller with all permissions", async () => {
    const grant = { name: "k", permissions: ["iam.write", "apps.write"] };
    const [mine, theirs] = [await call.post("/iam/api-keys", grant), await call.post("/iam/api-keys", grant)];
    const strong = api.as(mine.key);
    const body = { provider: ISSUER, identifier: "eve" };
    const denied = { status: 403, code: "permission_denied" };
    const add = (accountId: string) =>
      strong.expectRejection("POST", "/iam/identities", { ...body, accountId });
    expect(await add(theirs.accountId)).toMatchObject(denied);
    const fresh = await addAccount();
    const first = await strong.post("/iam/identities", { ...body, accountId: fresh.id });
    expect(await add(fresh.id)).toMatchObject(denied);
    const path = `/iam/identities/${first.id}`;
    expect(await strong.expectRejection("PUT", path, { identifier: "mallory" })).toMatchObject(denied);
    await strong.put(path, { phone: "+1" });
    await strong.post("/iam/identities", { ...body, identifier: "own", accountId: mine.accountId });
    await call.put(path, { identifier: "ada" });
  });
});
