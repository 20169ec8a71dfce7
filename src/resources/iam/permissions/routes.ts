import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/problem.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { permissionSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { renderPermission } from "../render-permission.ts";

const permission = standardRoutes({ name: "permission", prefix: "perm", entity: permissionSchema });

/** Permissions: what roles, keys and memberships can hold. Nobody makes them; routes ask for them. */
export const permissions: Resource<IamDeps> = {
  path: "/iam/permissions",
  tag: "Permissions",
  routes({ permissionNames }) {
    // They are of one age, so in the order of their ids.
    const all = ({ organizationId }: Caller) =>
      permissionNames()
        .map((name) => renderPermission(organizationId, name))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
    return [
      permission.list(async ({ caller, page: { limit, offset } }) => {
        const found = all(caller);
        return { items: found.slice(offset, offset + limit), total: found.length };
      }),
      permission.get(async ({ caller, id }) => {
        const found = all(caller).find((one) => one.id === id);
        if (!found) throw notFound("permission");
        return found;
      }),
    ];
  },
};
