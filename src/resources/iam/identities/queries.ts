import type { Queryable, Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { requireGrantable } from "../../../http/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { requireAccounts, visibleAccounts } from "../../kit/account-scope.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import type { Identity } from "../iam-entities.ts";
import { type IamDeps, permissionsOfGrant } from "../iam-grants.ts";
import { renderAccount, renderIdentity } from "../iam-render.ts";
import { type IdentityInput, identityContent } from "./schema.ts";

type Deps = Pick<IamDeps, "db" | "clock">;

const rows = ownedRows("identities", { prefix: "idn", entity: "identity", access: true });
const TAKEN = "There is an identity of that provider and identifier already.";

export const getIdentity = async ({ db }: Deps, caller: Caller, id: string): Promise<Identity> =>
  complete(db, caller, await rows.get(db, caller, id));

export async function listIdentities({ db }: Deps, caller: Caller, page: Page): Promise<Listed<Identity>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await completeAll(db, caller, items), total };
}

/** @throws ApiError 403 where the account may do more than the caller, 404 for the account, 409 */
export async function createIdentity(
  { db, clock }: Deps,
  caller: Caller,
  { info, ...input }: IdentityInput,
): Promise<Identity> {
  const created = db.transaction().execute(async (trx) => {
    await requireAccounts(trx, caller, [input.accountId]);
    await requireLendable(trx, caller, input.accountId);
    const row = await rows.insert(trx, caller, { ...input, info: JSON.stringify(info) }, clock());
    return complete(trx, caller, row);
  });
  return refuseTaken(TAKEN, created);
}

/** @throws ApiError 403 where somebody else would become an account that may do more than the caller, 404, 409 */
export async function updateIdentity(
  { db, clock }: Deps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Identity> {
  const updated = db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { provider, identifier, email, phone } = before;
    const content = { provider, identifier, email, phone, info: before.info };
    const { info, ...after } = applyPatch(identityContent, content, patch);
    const renamed = after.provider !== provider || after.identifier !== identifier;
    if (renamed) await requireLendable(trx, caller, before.accountId);
    const row = await rows.update(trx, caller, before, { ...after, info: JSON.stringify(info) }, clock());
    return complete(trx, caller, row);
  });
  return refuseTaken(TAKEN, updated);
}

export async function deleteIdentity({ db, clock }: Deps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

/** Whoever is given an identity may do what its account may: that is a grant. */
async function requireLendable(trx: Trx, caller: Caller, accountId: string): Promise<void> {
  const membership = await trx
    .selectFrom("memberships")
    .select(["permissions", "roleIds"])
    .where("accountId", "=", accountId)
    .where("organizationId", "=", caller.organizationId)
    .forShare()
    .executeTakeFirst();
  if (membership) requireGrantable(caller, await permissionsOfGrant(trx, caller, membership));
}

async function complete(db: Queryable, caller: Caller, row: Row<"identities">): Promise<Identity> {
  const [identity] = await completeAll(db, caller, [row]);
  return identity ?? renderIdentity(row);
}

async function completeAll(
  db: Queryable,
  caller: Caller,
  identities: readonly Row<"identities">[],
): Promise<readonly Identity[]> {
  const accounts = await visibleAccounts(db, caller)
    .selectAll()
    .where("id", "in", identities.map(({ accountId }) => accountId).concat(""))
    .execute();
  const byId = new Map(accounts.map((account) => [account.id, renderAccount(account)]));
  return identities.map((row) => renderIdentity(row, byId.get(row.accountId) ?? null));
}
