import type { Trx } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { createId } from "../../lib/ids.ts";
import { requireAccounts } from "../kit/account-scope.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { insideGroups, membersOf } from "./group-members.ts";
import { group } from "./schema.ts";

export const groups = standardResource({
  path: "/iam/groups",
  tag: "Groups",
  name: "group",
  table: "groups",
  shape: group,
  audit: "group",
  readAside: async (trx, { id }) => ({ members: await memberIds(trx, id) }),
  async afterWrite({ trx, caller, nowMs, id, values: { members } }) {
    const before = await memberIds(trx, id);
    const leaving = before.filter((account) => !members.includes(account));
    const left = trx.deleteFrom("groupMembers").where("groupId", "=", id);
    await left.where("accountId", "in", leaving.concat("")).execute();
    const joining = members.filter((account) => !before.includes(account));
    await addMembers(trx, caller, id, joining, nowMs);
  },
  inside: insideGroups,
  notes: {
    create: { missing: "an account does not exist" },
    update: {
      description:
        "`members` replaces the whole list of members. Accounts that remain members keep their member id.",
    },
  },
});

const memberIds = async (trx: Trx, groupId: string): Promise<string[]> =>
  (await membersOf(trx, [groupId]).execute()).map(({ accountId }) => accountId);

/** Adds accounts to a group. @throws ApiError 404 if an account is not visible to the organization */
async function addMembers(
  trx: Trx,
  caller: Caller,
  groupId: string,
  accountIds: readonly string[],
  nowMs: number,
): Promise<void> {
  const accounts = await requireAccounts(trx, caller, accountIds);
  if (accounts.length === 0) return;
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const members = accounts.map(({ id }) => ({
    id: createId("gm", nowMs),
    groupId,
    accountId: id,
    ...times,
  }));
  await trx.insertInto("groupMembers").values(members).execute();
}
