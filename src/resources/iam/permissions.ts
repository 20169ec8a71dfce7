import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { listOf } from "../kit/answer.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import type { IamDeps } from "./iam-grants.ts";
import { renderPermission } from "./render-permission.ts";
import { permissionSchema } from "./schema.ts";

/** Routes that list all permissions. Each route of the API requires a fixed permission, so this list cannot be edited. */
export const permissions: Resource<IamDeps> = {
  path: "/iam/permissions",
  tag: "Permissions",
  routes({ permissionNames }) {
    // Sorted by id, because all permissions have the same creation time.
    const all = ({ organizationId }: Caller) =>
      permissionNames()
        .map((name) => renderPermission(organizationId, name))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    return [
      defineRoute(
        {
          method: "get",
          path: "/",
          operation: "listPermissions",
          summary: "List the permissions",
          query: pageQuerySchema,
          answer: listOf(permissionSchema),
        },
        async ({ caller, query: { limit, offset } }) => {
          const found = all(caller);
          return { items: found.slice(offset, offset + limit), total: found.length };
        },
      ),
      defineRoute(
        {
          method: "get",
          path: "/:permissionId",
          operation: "getPermission",
          summary: "Get a permission",
          params: { permissionId: pathId("perm", "permission") },
          answer: permissionSchema,
        },
        async ({ caller, params }) => {
          const found = all(caller).find(({ id }) => id === params.permissionId);
          if (!found) throw notFound("permission");
          return found;
        },
      ),
    ];
  },
};
