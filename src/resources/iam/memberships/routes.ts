import { ACCOUNTS, requireRow } from "../../kit/references.ts";
import type { Write } from "../../kit/resource-spec.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { membership, type membershipFields, organization } from "../iam-entities.ts";
import { grant, type IamDeps, requireTakeable } from "../iam-grants.ts";
import { heldPermissions, rolesOf } from "../render-permission.ts";

/** Memberships: who belongs to the organization, and what they may do in it when another issuer's token names them. */
export const memberships = standardResource({
  path: "/iam/memberships",
  tag: "Memberships",
  name: "membership",
  table: "memberships",
  shape: membership,
  audit: "membership",
  feed: "access",
  taken: { when: "the account is a member already", message: "The account is a member already.", of: "new" },
  async prepare({ trx, deps, caller, before, values }: Write<typeof membershipFields, IamDeps>) {
    const granted = await grant(trx, deps, caller, values, before);
    if (before) await requireTakeable(trx, caller, before, granted);
    else await requireRow(trx, caller, ACCOUNTS, values.accountId);
    return granted;
  },
  async remove({ trx, caller, row, remove }) {
    await requireTakeable(trx, caller, row);
    await remove();
  },
  async inside(db, rows, { organizationId }) {
    const home = await db
      .selectFrom("organizations")
      .selectAll()
      .where("id", "=", organizationId)
      .executeTakeFirstOrThrow();
    const held = heldPermissions(organizationId, await rolesOf(db, { organizationId }, rows));
    return (row) => ({ organization: organization.render(home), ...held(row) });
  },
  notes: {
    create: { missing: "the account or a role is not there" },
    update: { description: "Who adds or takes away permissions or roles must hold what they grant." },
    delete: {
      description:
        "Who deletes it must hold what it grants. The account stays, and its API keys do what they may until they are deleted.",
    },
  },
});
