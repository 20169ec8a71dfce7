import type { Queryable, Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { createId } from "../../../lib/ids.ts";
import { requireAccounts } from "../../kit/account-scope.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import type { Group } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { renderGroup, renderGroupMember } from "../iam-render.ts";
import { type GroupInput, groupInput } from "./schema.ts";

type Deps = Pick<IamDeps, "db" | "clock">;

const rows = ownedRows("groups", { prefix: "grp", entity: "group" });

export const getGroup = async ({ db }: Deps, caller: Caller, id: string): Promise<Group> =>
  complete(db, await rows.get(db, caller, id));

export async function listGroups({ db }: Deps, caller: Caller, page: Page): Promise<Listed<Group>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await withMembers(db, items), total };
}

/** @throws ApiError 404 where the organization does not see an account */
export async function createGroup({ db, clock }: Deps, caller: Caller, input: GroupInput): Promise<Group> {
  return db.transaction().execute(async (trx) => {
    const row = await rows.insert(trx, caller, { name: input.name }, clock());
    await addMembers(trx, caller, row, input.members, clock());
    return complete(trx, row);
  });
}

/** Members that stay keep their ids. @throws ApiError 404 where the organization does not see an account */
export async function updateGroup(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Group> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const members = await memberIds(trx, id);
    const input = applyPatch(groupInput, { name: before.name, members }, patch);
    const row = await rows.update(trx, caller, before, { name: input.name }, clock());
    const leaving = members.filter((account) => !input.members.includes(account));
    await trx
      .deleteFrom("groupMembers")
      .where("groupId", "=", id)
      .where("accountId", "in", leaving.concat(""))
      .execute();
    const joining = input.members.filter((account) => !members.includes(account));
    await addMembers(trx, caller, row, joining, clock());
    return complete(trx, row);
  });
}

export async function deleteGroup({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

async function memberIds(trx: Trx, groupId: string): Promise<string[]> {
  const found = await trx
    .selectFrom("groupMembers")
    .select("accountId")
    .where("groupId", "=", groupId)
    .execute();
  return found.map(({ accountId }) => accountId);
}

async function addMembers(
  trx: Trx,
  caller: Caller,
  group: Row<"groups">,
  accountIds: readonly string[],
  nowMs: number,
): Promise<void> {
  const accounts = await requireAccounts(trx, caller, accountIds);
  if (accounts.length === 0) return;
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  await trx
    .insertInto("groupMembers")
    .values(
      accounts.map((account) => ({
        id: createId("gm", nowMs),
        groupId: group.id,
        accountId: account.id,
        ...times,
      })),
    )
    .execute();
}

/** The groups with their members, by creation. */
async function withMembers(db: Queryable, groups: readonly Row<"groups">[]): Promise<readonly Group[]> {
  if (groups.length === 0) return [];
  const rows = await db
    .selectFrom("groupMembers")
    .selectAll()
    .where(
      "groupId",
      "in",
      groups.map(({ id }) => id),
    )
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  const byGroup = Map.groupBy(rows, ({ groupId }) => groupId);
  return groups.map((group) => renderGroup(group, (byGroup.get(group.id) ?? []).map(renderGroupMember)));
}

async function complete(db: Queryable, row: Row<"groups">): Promise<Group> {
  const [group] = await withMembers(db, [row]);
  return group ?? renderGroup(row);
}
