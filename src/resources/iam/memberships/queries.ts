import type { Queryable } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { requireAccounts } from "../../kit/account-scope.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import type { Membership } from "../iam-entities.ts";
import { grant, type IamDeps } from "../iam-grants.ts";
import { renderMembership, renderOrganization, renderRoles } from "../iam-render.ts";
import { renderPermission } from "../render-permission.ts";
import { type MembershipInput, membershipContent } from "./schema.ts";

const rows = ownedRows("memberships", { prefix: "mem", entity: "membership", access: true });

export const getMembership = async ({ db }: IamDeps, caller: Caller, id: string): Promise<Membership> =>
  complete(db, caller, await rows.get(db, caller, id));

export async function listMemberships(
  { db }: IamDeps,
  caller: Caller,
  page: Page,
): Promise<Listed<Membership>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await completeAll(db, caller, items), total };
}

/** @throws ApiError 400, 403 (see `grant`), 404 for account and roles, 409 where it is a member already */
export async function createMembership(
  deps: IamDeps,
  caller: Caller,
  { accountId, role, ...asked }: MembershipInput,
): Promise<Membership> {
  const { db, clock } = deps;
  const created = db.transaction().execute(async (trx) => {
    const granted = await grant(trx, deps, caller, asked);
    await requireAccounts(trx, caller, [accountId]);
    const row = await rows.insert(trx, caller, { accountId, role, ...granted }, clock());
    return complete(trx, caller, row);
  });
  return refuseTaken("The account is a member already.", created);
}

/** @throws ApiError 400, 403 (see `grant`), 404 */
export async function updateMembership(
  deps: IamDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Membership> {
  return deps.db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { role, permissions, roleIds } = before;
    const { role: rank, ...asked } = applyPatch(membershipContent, { role, permissions, roleIds }, patch);
    const granted = await grant(trx, deps, caller, asked, before);
    const row = await rows.update(trx, caller, before, { role: rank, ...granted }, deps.clock());
    return complete(trx, caller, row);
  });
}

export async function deleteMembership({ db, clock }: IamDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

async function complete(db: Queryable, caller: Caller, row: Row<"memberships">): Promise<Membership> {
  const [membership] = await completeAll(db, caller, [row]);
  return membership ?? renderMembership(row);
}

async function completeAll(
  db: Queryable,
  { organizationId }: Caller,
  memberships: readonly Row<"memberships">[],
): Promise<readonly Membership[]> {
  const organization = await db
    .selectFrom("organizations")
    .selectAll()
    .where("id", "=", organizationId)
    .executeTakeFirstOrThrow();
  const roles = await db
    .selectFrom("roles")
    .selectAll()
    .where("organizationId", "=", organizationId)
    .where("id", "in", memberships.flatMap(({ roleIds }) => roleIds).concat(""))
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  return memberships.map((row) =>
    renderMembership(row, {
      organization: renderOrganization(organization),
      permissions: row.permissions.map((name) => renderPermission(organizationId, name)),
      roles: renderRoles(roles.filter(({ id }) => row.roleIds.includes(id))),
    }),
  );
}
