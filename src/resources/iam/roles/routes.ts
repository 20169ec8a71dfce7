import { pageBodySchema } from "../../../http/page.ts";
import { listOf } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { roleSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { createRole, deleteRole, getRole, listRoles, updateRole } from "./queries.ts";
import { roleInput, rolePatch } from "./schema.ts";

const role = standardRoutes({ name: "role", prefix: "role", entity: roleSchema });
const conflict = "the organization has a role of that name";

/** Roles: permissions under a name. */
export const roles: Resource<IamDeps> = {
  path: "/iam/roles",
  tag: "Roles",
  routes: (deps) => [
    role.create({ body: roleInput, conflict }, ({ caller, body }) => createRole(deps, caller, body)),
    role.list(({ caller, page }) => listRoles(deps, caller, page)),
    role.get(({ caller, id }) => getRole(deps, caller, id)),
    role.update(
      {
        body: rolePatch,
        conflict,
        description: "In force for all keys and members that have it. Who adds permissions must hold them.",
      },
      ({ caller, id, patch }) => updateRole(deps, caller, id, patch),
    ),
    role.remove({ conflict: "an API key or a membership has the role" }, ({ caller, id }) =>
      deleteRole(deps, caller, id),
    ),
    defineRoute(
      {
        method: "post",
        path: "/list",
        operation: "queryRoles",
        summary: "List the roles, by a body",
        body: pageBodySchema,
        answer: listOf(roleSchema),
      },
      ({ caller, body }) => listRoles(deps, caller, body.pagination),
    ),
  ],
};
