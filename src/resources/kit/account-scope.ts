import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { isId } from "../../lib/ids.ts";

/** Selects the accounts that an organization can see: its members, and the accounts that it created. */
export const visibleAccounts = (db: Queryable, { organizationId }: Pick<Caller, "organizationId">) =>
  db
    .selectFrom("accounts")
    .where((eb) =>
      eb.or([
        eb("accounts.organizationId", "=", organizationId),
        eb.exists(
          eb
            .selectFrom("memberships")
            .select("memberships.id")
            .whereRef("memberships.accountId", "=", "accounts.id")
            .where("memberships.organizationId", "=", organizationId),
        ),
      ]),
    );

/**
 * Returns the accounts with these ids and prevents their deletion until the transaction ends.
 * @throws ApiError 404 if the caller's organization cannot see one of the accounts
 */
export async function requireAccounts(
  trx: Trx,
  caller: Caller,
  ids: readonly string[],
): Promise<readonly Row<"accounts">[]> {
  const wanted = [...new Set(ids)];
  if (wanted.length === 0) return [];
  const found = await visibleAccounts(trx, caller)
    .selectAll()
    .where("id", "in", wanted.filter((id) => isId("acc", id)).concat(""))
    .orderBy("id")
    .forKeyShare()
    .execute();
  if (found.length < wanted.length) throw notFound("account");
  return found;
}
