import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { groupSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { createGroup, deleteGroup, getGroup, listGroups, updateGroup } from "./queries.ts";
import { groupInput, groupPatch } from "./schema.ts";

const group = standardRoutes({ name: "group", prefix: "grp", entity: groupSchema });

/** Groups: accounts under a name. */
export const groups: Resource<IamDeps> = {
  path: "/iam/groups",
  tag: "Groups",
  routes: (deps) => [
    group.create({ body: groupInput, missing: "an account is not there" }, ({ caller, body }) =>
      createGroup(deps, caller, body),
    ),
    group.list(({ caller, page }) => listGroups(deps, caller, page)),
    group.get(({ caller, id }) => getGroup(deps, caller, id)),
    group.update(
      { body: groupPatch, description: "`members` is the whole set; who stays keeps the member's id." },
      ({ caller, id, patch }) => updateGroup(deps, caller, id, patch),
    ),
    group.remove({}, ({ caller, id }) => deleteGroup(deps, caller, id)),
  ],
};
