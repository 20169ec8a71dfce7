import { sql } from "kysely";
import type { Trx } from "../../data/database.ts";
import { ALL_PERMISSIONS, requireHeld } from "../../http/callers/authorize.ts";
import { conflict } from "../../http/errors.ts";
import { pageBodySchema } from "../../http/page.ts";
import { listOf } from "../kit/answer.ts";
import { defineRoute } from "../kit/route.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { grantPermissions, requireOtherAdministrator } from "./iam-grants.ts";
import { rolePermissions } from "./render-permission.ts";
import { role } from "./schema.ts";

export const roles = standardResource({
  path: "/iam/roles",
  tag: "Roles",
  name: "role",
  table: "roles",
  shape: role,
  audit: "role",
  feed: "access",
  taken: {
    when: "the organization already has a role with this name",
    message: "A role with this name already exists.",
  },
  async prepare({ trx, deps, caller, id, before, values, nowMs }) {
    const permissions = grantPermissions(deps, caller, values.permissions, before?.permissions);
    const taken = (before?.permissions ?? []).filter((name) => !permissions.includes(name));
    requireHeld(caller, taken, "take away");
    if (taken.includes(ALL_PERMISSIONS)) await requireOtherAdministrator(trx, caller, { roleId: id }, nowMs);
    return { permissions };
  },
  inside: async () => rolePermissions(),
  async remove({ trx, row, remove }) {
    // The row is locked, and assigning the role would need the same lock. The role therefore cannot be assigned after this check.
    if (await isHeld(trx, row.id))
      throw conflict("API keys or members still have this role. Remove the role from them first.");
    await remove();
  },
  notes: {
    update: {
      description:
        "The change applies to all keys and members that have the role. The caller must hold all permissions that it adds or removes.",
    },
    delete: { conflict: "an API key or a membership has the role" },
  },
  more: (_deps, { list }) => [
    defineRoute({
      at: "POST /iam/roles/list",
      operation: "queryRoles",
      summary: "List the roles, with paging in the body",
      body: pageBodySchema,
      answer: listOf(role.entity),
      handle: ({ caller, body }) => list(caller, {}, body.pagination, {}),
    }),
  ],
});

async function isHeld(trx: Trx, id: string): Promise<boolean> {
  const has = sql<boolean>`role_ids @> ARRAY[${id}]::text[]`;
  const { held } = await trx
    .selectNoFrom((eb) =>
      eb
        .or([
          eb.exists(eb.selectFrom("memberships").select("id").where(has)),
          eb.exists(eb.selectFrom("apiKeys").select("id").where(has)),
        ])
        .as("held"),
    )
    .executeTakeFirstOrThrow();
  return Boolean(held);
}
