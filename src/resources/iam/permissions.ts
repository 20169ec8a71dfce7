import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { listOf } from "../kit/answer.ts";
import { slicePage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";
import { permissionSchema } from "./permission-schema.ts";
import { renderPermission } from "./render-permission.ts";

/** Routes that list all permissions. Each route of the API requires a fixed permission, so this list cannot be edited. */
export const permissions: Resource = {
  tag: "Permissions",
  params: { permissionId: pathId("perm", "permission") },
  routes({ permissionNames }) {
    // Sorted by id, because all permissions have the same creation time.
    const all = ({ organizationId }: Caller) =>
      permissionNames()
        .map((name) => renderPermission(organizationId, name))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    return [
      defineRoute({
        at: "GET /iam/permissions",
        operation: "listPermissions",
        summary: "List the permissions",
        query: pageQuerySchema,
        answer: listOf(permissionSchema),
        handle: async ({ caller, query }) => slicePage(all(caller), query),
      }),
      defineRoute({
        at: "GET /iam/permissions/:permissionId",
        operation: "getPermission",
        summary: "Get a permission",
        answer: permissionSchema,
        async handle({ caller, params }) {
          const found = all(caller).find(({ id }) => id === params.permissionId);
          if (!found) throw notFound("permission");
          return found;
        },
      }),
    ];
  },
};
