import { notFound } from "../../../http/problem.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { permissionSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { listPermissions } from "./catalog.ts";

const permission = standardRoutes({ name: "permission", prefix: "perm", entity: permissionSchema });

/** Permissions: what roles, keys and memberships can hold. Nobody makes them; routes ask for them. */
export const permissions: Resource<IamDeps> = {
  path: "/iam/permissions",
  tag: "Permissions",
  routes: (deps) => [
    permission.list(async ({ caller, page: { limit, offset } }) => {
      const all = listPermissions(deps, caller);
      return { items: all.slice(offset, offset + limit), total: all.length };
    }),
    permission.get(async ({ caller, id }) => {
      const found = listPermissions(deps, caller).find((one) => one.id === id);
      if (!found) throw notFound("permission");
      return found;
    }),
  ],
};
