import { describe, expect, it } from "vitest";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);
const { call } = api;

const addAccount = async (name = "Ada"): Promise<string> => (await call.post("/iam/accounts", { name })).id;
const accountsOf = (group: { members: { accountId: string }[] }) =>
  group.members.map(({ accountId }) => accountId).sort();

describe("a group", () => {
  it("contains each account only once, and can be created, read, listed and deleted", async () => {
    const account = await addAccount();
    const group = await call.post("/iam/groups", { name: "Support", members: [account, account] });
    expect(group).toMatchObject({
      id: expect.stringMatching(/^grp_/),
      name: "Support",
      members: [{ id: expect.stringMatching(/^gm_/), accountId: account, groupId: group.id }],
    });
    expect(group.members).toHaveLength(1);
    const empty = await call.post("/iam/groups", { name: "Empty" });
    expect(empty.members).toEqual([]);
    expect(await call.get(`/iam/groups/${group.id}`)).toEqual(group);
    expect(await call.get("/iam/groups")).toEqual([group, empty]);
    expect(await call.delete(`/iam/groups/${group.id}`)).toEqual({ id: group.id });
    expect((await call("GET", `/iam/groups/${group.id}`)).status).toBe(404);
  });

  it("has exactly the members that a change lists, and keeps its members if a change has no list", async () => {
    const [a, b, c] = [await addAccount("a"), await addAccount("b"), await addAccount("c")];
    const { id, members } = await call.post("/iam/groups", { name: "g", members: [a, b] });
    const put = (patch: object) => call.put(`/iam/groups/${id}`, patch);
    expect(accountsOf(await put({ name: "new" }))).toEqual([a, b].sort());
    const changed = await put({ members: [b, c] });
    expect(accountsOf(changed)).toEqual([b, c].sort());
    const kept = members.find(({ accountId }: { accountId: string }) => accountId === b);
    expect(changed.members).toContainEqual(kept);
    expect(await put({ members: [] })).toMatchObject({ name: "new", members: [] });
  });

  it("stays unchanged if a change names an account that does not exist", async () => {
    const group = await call.post("/iam/groups", { name: "g", members: [await addAccount()] });
    const patch = { name: "new", members: [await addAccount(), "acc_nobody"] };
    expect(await call.expectRejection("PUT", `/iam/groups/${group.id}`, patch)).toMatchObject({
      status: 404,
    });
    expect(await call.get(`/iam/groups/${group.id}`)).toEqual(group);
  });
});
