import { createApiKey } from "../../data/accounts/api-keys.ts";
import { recordAudit } from "../../data/accounts/audit.ts";
import { createOrganization } from "../../data/accounts/organizations.ts";
import { removeSystemApp } from "../../data/apps/system-app.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../http/callers/authorize.ts";
import { listRows, type OwnedTable } from "../kit/references.ts";
import { requireOperator } from "../kit/require-operator.ts";
import { defineRoute } from "../kit/route.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { insideGroups } from "./group-members.ts";
import { heldPermissions, renderRoles } from "./render-permission.ts";
import { apiKey, group, membership, newApiKeySchema, organization, space } from "./schema.ts";

const newOrganizationSchema = organization.entity.extend({ apiKey: newApiKeySchema }).meta({
  id: "NewOrganization",
  description: "An organization with its first API key, which has the permission `*`.",
});

/** Tables whose rows are deleted together with their organization. A table comes before the tables to which its rows refer. */
const PARTS = ["apiKeys", "identities", "groups", "memberships", "accounts", "roles", "spaces"] as const;

/** A caller only sees its own organization. */
export const organizations = standardResource({
  path: "/organizations",
  tag: "Organizations",
  name: "organization",
  table: "organizations",
  shape: organization,
  audit: "organization",
  feed: "access",
  owner: "id",
  inUse: {
    when: "the organization still has resources such as apps or blueprints, or it is the one that Inlet created at its first start",
    message:
      "The organization cannot be deleted. Either it still has resources such as apps or blueprints, or it is the one that Inlet created at its first start.",
  },
  async inside(db, _rows, { organizationId }) {
    const all = <T extends OwnedTable>(table: T) => listRows(db, { organizationId }, table);
    const roles = await all("roles");
    const held = heldPermissions(organizationId, roles);
    const groups = await all("groups");
    const members = await insideGroups(db, groups);
    const inside = {
      groups: groups.map((row) => group.render(row, members(row))),
      members: (await all("memberships")).map((row) => membership.render(row, held(row))),
      roles: renderRoles(roles),
      spaces: (await all("spaces")).map((row) => space.render(row)),
    };
    return () => inside;
  },
  async remove({ trx, caller, row: { id }, remove, nowMs }) {
    requireHeld(caller, [ALL_PERMISSIONS], "take away");
    await removeSystemApp(trx, id, nowMs);
    for (const table of PARTS) await trx.deleteFrom(table).where("organizationId", "=", id).execute();
    await remove();
  },
  notes: {
    delete: {
      description:
        "Requires the permission `*`. The organization's keys, accounts, roles, groups and spaces are deleted too, so all its callers lose access.",
    },
  },
  without: ["create"],
  more: ({ db, clock }, { answer }) => [
    defineRoute({
      at: "POST /organizations",
      operation: "createOrganization",
      summary: "Create an organization",
      creates: true,
      body: organization.input,
      answer: newOrganizationSchema,
      description:
        "Creates the organization with a space, a service account and an API key with the permission `*`. Only this response contains the key. The caller itself cannot see the new organization. Only the operator's organization, the one from the first start, can create organizations.",
      handle: ({ caller, body }) =>
        db.transaction().execute(async (trx) => {
          await requireOperator(trx, caller);
          const names = { organization: body.name, space: "default", account: "default" };
          const made = await createOrganization(trx, names, clock());
          const { organizationId: id } = made;
          const row = await trx
            .updateTable("organizations")
            .set(body)
            .where("id", "=", id)
            .returningAll()
            .executeTakeFirstOrThrow();
          const grant = { ...made, name: "default", permissions: [ALL_PERMISSIONS] };
          const first = await createApiKey(trx, grant, clock());
          const key = await trx
            .selectFrom("apiKeys")
            .selectAll()
            .where("id", "=", first.id)
            .executeTakeFirstOrThrow();
          await recordAudit(trx, caller, { action: "create", entity: "organization", id }, clock());
          return {
            ...(await answer(trx, { ...caller, organizationId: id }, row)),
            apiKey: { ...apiKey.render(key, { defaultSpaceId: key.spaceId }), key: first.token },
          };
        }),
    }),
  ],
});
