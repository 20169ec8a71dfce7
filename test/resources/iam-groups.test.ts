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

const addAccount = async (name = "Ada"): Promise<string> => (await post("/iam/accounts", { name })).id;
const accountsOf = (group: { members: { accountId: string }[] }) =>
  group.members.map(({ accountId }) => accountId).sort();

describe("a group", () => {
  it("is made with members, seen, listed and deleted", async () => {
    const account = await addAccount();
    const group = await post("/iam/groups", { name: "Support", members: [account, account] });
    expect(group).toMatchObject({
      id: expect.stringMatching(/^grp_/),
      name: "Support",
      members: [{ id: expect.stringMatching(/^gm_/), accountId: account, groupId: group.id }],
    });
    const empty = await post("/iam/groups", { name: "Empty" });
    expect(empty.members).toEqual([]);
    expect(await get(`/iam/groups/${group.id}`)).toEqual(group);
    expect(await get("/iam/groups")).toEqual([group, empty]);
    expect((await call("DELETE", `/iam/groups/${group.id}`)).body).toEqual({ id: group.id });
    expect((await call("GET", `/iam/groups/${group.id}`)).status).toBe(404);
  });

  it("has the members that a change names, and all where it names none", async () => {
    const [a, b, c] = [await addAccount("a"), await addAccount("b"), await addAccount("c")];
    const { id, members } = await post("/iam/groups", { name: "g", members: [a, b] });
    const put = async (patch: object) => (await call("PUT", `/iam/groups/${id}`, patch)).body;
    expect(accountsOf(await put({ name: "new" }))).toEqual([a, b].sort());
    const changed = await put({ members: [b, c] });
    expect(accountsOf(changed)).toEqual([b, c].sort());
    const kept = members.find(({ accountId }: { accountId: string }) => accountId === b);
    expect(changed.members).toContainEqual(kept);
    expect(await put({ members: null })).toMatchObject({ name: "new", members: [] });
  });

  it("is refused with each field that does not fit", async () => {
    expect(await post("/iam/groups", { members: [1], extra: 1 })).toMatchObject({
      code: "invalid_parameters",
      details: [{ path: "name" }, { path: "members[0]" }, { path: "extra" }],
    });
  });

  it("changes nothing when one of its members is unknown", async () => {
    const group = await post("/iam/groups", { name: "g", members: [await addAccount()] });
    const patch = { name: "new", members: [await addAccount(), "acc_nobody"] };
    expect((await call("PUT", `/iam/groups/${group.id}`, patch)).status).toBe(404);
    expect(await get(`/iam/groups/${group.id}`)).toEqual(group);
  });
});

it("is hidden from other organizations, whose accounts are unknown to it", async () => {
  const account = await addAccount();
  const group = await post("/iam/groups", { name: "ours" });
  const stranger = api.as(await api.strangerKey());
  await expectHidden(stranger, "/iam/groups", group.id, { name: "theirs" });
  await expectUnknownInside(stranger, "POST", "/iam/groups", account, (id) => ({ name: "g", members: [id] }));
  const theirs = await post("/iam/groups", { name: "theirs" }, stranger);
  await expectUnknownInside(stranger, "PUT", `/iam/groups/${theirs.id}`, account, (id) => ({
    members: [id],
  }));
  expect((await stranger("GET", "/iam/groups")).headers.get("x-total-count")).toBe("1");
});
