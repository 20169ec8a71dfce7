import { describe, expect, it } from "vitest";
import { type Caller, createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const ISSUER = "https://id.example.com";
const addAccount = () => call.post("/iam/accounts", { name: "Ada", status: "active" });

describe("an identity", () => {
  it("is made, shown with its account, listed, changed and deleted", async () => {
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
    expect(await call.refusal("PUT", path, { accountId: account.id })).toMatchObject({
      paths: ["accountId"],
    });
    expect(await call.delete(path)).toEqual({ id: identity.id });
    expect((await call("GET", path)).status).toBe(404);
  });

  it("is refused with an invalid email address or too much info", async () => {
    const { id: accountId } = await addAccount();
    const body = { accountId, identifier: "refused", email: "nobody", info: "i".repeat(20_000) };
    expect(await call.refusal("POST", "/iam/identities", body)).toEqual({
      status: 400,
      code: "invalid_parameters",
      paths: ["email", "info"],
    });
  });

  it("exists once in its organization, whatever others have written", async () => {
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

  it("cannot be given to an account that may do more than the caller", async () => {
    const account = await addAccount();
    const role = await call.post("/iam/roles", { name: "a", permissions: ["apps.write"] });
    await call.put(`/iam/memberships/${account.memberships[0].id}`, { roleIds: [role.id] });
    const limited = api.as(await api.keyWith("iam.write"));
    const body = { accountId: account.id, provider: ISSUER, identifier: "mallory" };
    expect(await limited.refusal("POST", "/iam/identities", body)).toMatchObject({ status: 403 });
    const { id } = await call.post("/iam/identities", { ...body, identifier: "lent" });
    const path = `/iam/identities/${id}`;
    expect(await limited.refusal("PUT", path, { identifier: "mallory" })).toMatchObject({ status: 403 });
    await limited.put(path, { phone: "+1" });
  });

  it("is given to an account that is in use only by that account itself, or by a caller who may do all", async () => {
    const grant = { name: "k", permissions: ["iam.write", "apps.write"] };
    const [mine, theirs] = [await call.post("/iam/api-keys", grant), await call.post("/iam/api-keys", grant)];
    const strong = api.as(mine.key);
    const body = { provider: ISSUER, identifier: "eve" };
    const denied = { status: 403, code: "permission_denied" };
    const give = (accountId: string) => strong.refusal("POST", "/iam/identities", { ...body, accountId });
    expect(await give(theirs.accountId)).toMatchObject(denied);
    const fresh = await addAccount();
    const first = await strong.post("/iam/identities", { ...body, accountId: fresh.id });
    expect(await give(fresh.id)).toMatchObject(denied);
    const path = `/iam/identities/${first.id}`;
    expect(await strong.refusal("PUT", path, { identifier: "mallory" })).toMatchObject(denied);
    await strong.put(path, { phone: "+1" });
    await strong.post("/iam/identities", { ...body, identifier: "own", accountId: mine.accountId });
    await call.put(path, { identifier: "ada" });
  });
});
