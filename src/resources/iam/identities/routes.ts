import type { Trx } from "../../../data/database.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError } from "../../../http/problem.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { ACCOUNTS } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { account, identity } from "../iam-entities.ts";
import { permissionsOfGrant } from "../iam-grants.ts";

/** Identities: who an account is to an OIDC issuer, or in the organization's own naming. */
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
    when: "the organization has an identity of that provider and identifier",
    message: "There is an identity of that provider and identifier already.",
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
        "Its holder may do what the account may as a member, so the caller must hold that. An account that has an identity or an API key already is given another only by itself, or with the permission `*`.",
    },
    update: { description: "Another `provider` or `identifier` is given as a new identity is." },
    delete: { description: "The caller must hold what the account may do as a member." },
  },
});

/** Who is given an identity may do what its account may: that is a grant. @throws ApiError 403 */
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

/** Nobody lets others act in the name of an account that somebody uses: it does so itself, or who may do all. @throws ApiError 403 */
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
    throw new ApiError("permission_denied", "The account is in use: it gives itself another identity.");
}
