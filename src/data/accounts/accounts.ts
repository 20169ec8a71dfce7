import { createId } from "../../lib/ids.ts";
import type { Trx } from "../database.ts";
import type { Row } from "../tables.ts";

type AccountRow = Row<"accounts">;

export type NewAccount = Pick<AccountRow, "name" | "isService" | "status"> &
  Partial<Omit<AccountRow, "id" | "organizationId" | "createdAt" | "updatedAt">>;

const NO_DETAILS = {
  firstName: null,
  lastName: null,
  language: null,
  agentIdentifier: null,
  appUid: null,
  platformIdentityId: null,
  profilePictureAssetId: null,
} as const;

/** Inserts an account and adds it to the organization as a member without permissions. */
export async function insertAccount(
  trx: Trx,
  organizationId: string,
  account: NewAccount,
  nowMs: number,
): Promise<AccountRow> {
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const row = await trx
    .insertInto("accounts")
    .values({ ...NO_DETAILS, ...account, id: createId("acc", nowMs), organizationId, ...times })
    .returningAll()
    .executeTakeFirstOrThrow();
  await addMember(trx, organizationId, row.id, nowMs);
  return row;
}

/** The new membership grants no permissions. */
export async function addMember(
  trx: Trx,
  organizationId: string,
  accountId: string,
  nowMs: number,
): Promise<void> {
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const nothing = { role: 0, permissions: [], roleIds: [] };
  await trx
    .insertInto("memberships")
    .values({ id: createId("mem", nowMs), accountId, organizationId, ...nothing, ...times })
    .execute();
}
