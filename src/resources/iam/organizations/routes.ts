import { createApiKey } from "../../../data/accounts/api-keys.ts";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { createOrganization } from "../../../data/accounts/organizations.ts";
import { removeSystemApp } from "../../../data/apps/system-app.ts";
import type { Trx } from "../../../data/database.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../../http/callers/authorize.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError } from "../../../http/problem.ts";
import { listRows, type OwnedTable } from "../../kit/references.ts";
import type { Kit } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { insideGroups } from "../group-members.ts";
import { apiKey, group, membership, newApiKeySchema, organization, space } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { heldPermissions, renderRoles } from "../render-permission.ts";

const newOrganizationSchema = organization.entity.extend({ apiKey: newApiKeySchema }).meta({
  id: "NewOrganization",
  description: "An organization with its first API key, which may do all in it.",
});

/** They go with an organization, those that name others first. */
const PARTS = ["apiKeys", "identities", "groups", "memberships", "accounts", "roles", "spaces"] as const;

/** Organizations: a caller sees its own. */
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
    when: "it has anything else in it, such as apps or blueprints, or is the organization of the first start",
    message:
      "The organization has something in it, such as apps or blueprints, or is the one of the first start.",
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
        "Needs the permission `*`: its keys, accounts, roles, groups and spaces go with it, and nobody can call for it any more.",
    },
  },
  without: ["create"],
  more: ({ db, clock }: IamDeps, { answer }: Kit<typeof organization>) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "createOrganization",
        summary: "Create an organization",
        creates: true,
        body: organization.input,
        answer: newOrganizationSchema,
        description:
          "It has a space, a service account and an API key that may do all in it, which is told here only. Nobody else sees it, its founder included. For callers of the operator's organization only, which is that of the first start.",
      },
      ({ caller, body }) =>
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
    ),
  ],
});

/** @throws ApiError 403 */
async function requireOperator(trx: Trx, { organizationId }: Caller): Promise<void> {
  const operator = await trx.selectFrom("cluster").select("organizationId").executeTakeFirst();
  if (operator?.organizationId !== organizationId)
    throw new ApiError(
      "permission_denied",
      "Only callers of the operator's organization make organizations.",
    );
}
