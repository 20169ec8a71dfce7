import { insertAccount } from "../../../data/accounts/accounts.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { AccountStatus, Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { listPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import type { Account } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { renderAccount, renderIdentity, renderMembership } from "../iam-render.ts";
import { type AccountInput, accountContent } from "./schema.ts";

type Deps = Pick<IamDeps, "db" | "clock">;

export async function getAccount({ db }: Deps, caller: Caller, id: string): Promise<Account> {
  const row = await visibleAccounts(db, caller).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("account");
  return complete(db, caller, row);
}

export async function listAccounts({ db }: Deps, caller: Caller, page: Page): Promise<Listed<Account>> {
  const { items, total } = await listPage(visibleAccounts(db, caller).selectAll(), page);
  return { items: await completeAll(db, caller, items), total };
}

/** Makes the account a member of the caller's organization, which grants it nothing yet. */
export async function createAccount(
  { db, clock }: Deps,
  caller: Caller,
  input: AccountInput,
): Promise<Account> {
  return db.transaction().execute(async (trx) => {
    const row = await insertAccount(trx, caller.organizationId, input, clock());
    await recordAudit(trx, caller, { action: "create", entity: "account", id: row.id }, clock());
    return complete(trx, caller, row);
  });
}

/** @throws ApiError 409 where the status would not go its way */
export async function updateAccount(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Account> {
  return db.transaction().execute(async (trx) => {
    const before = await lockOwn(trx, caller, id);
    const content = contentOf(before);
    const after = applyPatch(accountContent, content, patch);
    requireStep(before.status, after.status);
    const row = await trx
      .updateTable("accounts")
      .set({ ...after, updatedAt: new Date(clock()) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    const fields = changedFields(content, after);
    await recordAudit(trx, caller, { action: "update", entity: "account", id, fields }, clock());
    await recordChange(trx, { kind: "access", key: caller.organizationId });
    return complete(trx, caller, row);
  });
}

/** Its identities, memberships and revoked keys go with it. @throws ApiError 409 while it has keys */
export async function deleteAccount({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await lockOwn(trx, caller, id);
    await trx
      .deleteFrom("apiKeys")
      .where("accountId", "=", id)
      .where("organizationId", "=", caller.organizationId)
      .where("revokedAt", "is not", null)
      .execute();
    await trx.deleteFrom("accounts").where("id", "=", id).execute();
    await recordAudit(trx, caller, { action: "delete", entity: "account", id }, clock());
    await recordChange(trx, { kind: "access", key: caller.organizationId });
  });
  await refuseInUse("The account has API keys, or is the one of the first start.", deleted);
}

/** Whoever is a member elsewhere stays what its own organization has made of it. @throws ApiError 404, 403 */
async function lockOwn(trx: Trx, caller: Caller, id: string): Promise<Row<"accounts">> {
  const row = await visibleAccounts(trx, caller)
    .selectAll()
    .where("id", "=", id)
    .forUpdate()
    .executeTakeFirst();
  if (!row) throw notFound("account");
  if (row.organizationId !== caller.organizationId) {
    throw new ApiError("permission_denied", "Only the organization that has made an account can change it.");
  }
  return row;
}

const STEPS: Readonly<Record<AccountStatus, readonly AccountStatus[]>> = {
  pending: ["active"],
  active: ["disabled"],
  disabled: [],
};

function requireStep(from: AccountStatus, to: AccountStatus): void {
  if (from === to || STEPS[from].includes(to)) return;
  throw conflict(`An account that is ${from} does not become ${to}.`);
}

const contentOf = (row: Row<"accounts">) => {
  const { id, organizationId, isService, createdAt, updatedAt, ...content } = row;
  return content;
};

async function complete(db: Queryable, caller: Caller, row: Row<"accounts">): Promise<Account> {
  const [account] = await completeAll(db, caller, [row]);
  return account ?? renderAccount(row);
}

/** With what the caller's organization knows of them, and no other. */
async function completeAll(
  db: Queryable,
  { organizationId }: Caller,
  rows: readonly Row<"accounts">[],
): Promise<readonly Account[]> {
  const ids = rows.map(({ id }) => id).concat("");
  const identities = await db
    .selectFrom("identities")
    .selectAll()
    .where("accountId", "in", ids)
    .where("organizationId", "=", organizationId)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  const memberships = await db
    .selectFrom("memberships")
    .selectAll()
    .where("accountId", "in", ids)
    .where("organizationId", "=", organizationId)
    .execute();
  return rows.map((row) =>
    renderAccount(row, {
      identities: identities
        .filter(({ accountId }) => accountId === row.id)
        .map((one) => renderIdentity(one)),
      memberships: memberships
        .filter(({ accountId }) => accountId === row.id)
        .map((one) => renderMembership(one)),
    }),
  );
}
