import { ACCOUNTS, requireRow } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { grant, requireTakeable } from "./iam-grants.ts";
import { heldPermissions, rolesOf } from "./render-permission.ts";
import { membership, organization } from "./schema.ts";

/** Routes of memberships. A membership gives permissions to an account that signs in through an OpenID Connect issuer. */
export const memberships = standardResource({
  path: "/iam/memberships",
  tag: "Memberships",
  name: "membership",
  table: "memberships",
  shape: membership,
  audit: "membership",
  feed: "access",
  taken: { when: "the account is already a member", message: "The account is already a member.", of: "new" },
  async prepare({ trx, deps, caller, before, values }) {
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
    create: { missing: "the account or a role does not exist" },
    update: {
      description: "The caller must hold all permissions that it adds or removes, including those of roles.",
    },
    delete: {
      description:
        "The caller must hold all permissions of the membership. The account is not deleted, and its API keys keep their permissions.",
    },
  },
});
