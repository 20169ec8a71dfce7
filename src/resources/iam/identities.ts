import type { Trx } from "../../data/database.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { ApiError } from "../../http/errors.ts";
import { visibleAccounts } from "../kit/account-scope.ts";
import { ACCOUNTS } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { permissionsOfGrant } from "./iam-grants.ts";
import { account, identity } from "./schema.ts";

export const identities = standardResource({
  path: "/iam/identities",
  tag: "Identities",
  name: "identity",
  table: "identities",
  shape: identity,
  audit: "identity",
  feed: "access",
  references: { accountId: ACCOUNTS },
  taken: {
    when: "the organization already has an identity with this provider and identifier",
    message: "An identity with this provider and identifier already exists.",
  },
  async prepare({ trx, caller, before, values: { accountId, provider, identifier } }) {
    const isSame = before?.provider === provider && before.identifier === identifier;
    if (!isSame) {
      await requireLendable(trx, caller, accountId);
      await requireUnused(trx, caller, accountId);
    }
    return {};
  },
  async remove({ trx, caller, row, remove }) {
    await requireLendable(trx, caller, row.accountId, "take away");
    await remove();
  },
  async inside(db, rows, caller) {
    const ids = rows.map(({ accountId }) => accountId);
    const accounts = await visibleAccounts(db, caller).selectAll().where("id", "in", ids).execute();
    const byId = new Map(accounts.map((row) => [row.id, account.render(row)]));
    return ({ accountId }) => ({ account: byId.get(accountId) ?? null });
  },
  notes: {
    create: {
      description:
        "The identity grants the permissions of the account's membership, so the caller must hold them. If the account already has an identity or an API key, only the account itself or a caller with `*` can add another.",
    },
    update: {
      description: "A change of `provider` or `identifier` needs the same permissions as a new identity.",
    },
    delete: { description: "The caller must hold the permissions of the account's membership." },
  },
});

/**
 * Checks that the caller holds all permissions of the account's membership, because an identity gives access to them.
 * @throws ApiError 403
 */
async function requireLendable(
  trx: Trx,
  caller: Caller,
  accountId: string,
  act: "grant" | "take away" = "grant",
): Promise<void> {
  const membership = await trx
    .selectFrom("memberships")
    .select(["permissions", "roleIds"])
    .where("accountId", "=", accountId)
    .where("organizationId", "=", caller.organizationId)
    .forShare()
    .executeTakeFirst();
  if (membership) requireHeld(caller, await permissionsOfGrant(trx, caller, membership), act);
}

/**
 * Checks that the account has no identity or API key. Otherwise the caller could give another person access to an
 * account in use. Exempts the account itself and callers with `*`.
 * @throws ApiError 403
 */
async function requireUnused(trx: Trx, caller: Caller, accountId: string): Promise<void> {
  if (accountId === caller.accountId || caller.permissions.has(ALL_PERMISSIONS)) return;
  const identity = trx.selectFrom("identities").select("id").where("accountId", "=", accountId).limit(1);
  const key = trx
    .selectFrom("apiKeys")
    .select("id")
    .where("accountId", "=", accountId)
    .where("revokedAt", "is", null)
    .limit(1);
  if ((await identity.executeTakeFirst()) ?? (await key.executeTakeFirst()))
    throw new ApiError(
      "permission_denied",
      "The account already has an identity or an API key. Only the account itself can add another identity.",
    );
}
