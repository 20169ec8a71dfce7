import type { Caller } from "../../../http/context.ts";
import type { Permission } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { renderPermission } from "../render-permission.ts";

/** All permissions of the caller's organization: of one age, so in the order of their ids. */
export const listPermissions = (
  { permissionNames }: Pick<IamDeps, "permissionNames">,
  { organizationId }: Caller,
): readonly Permission[] =>
  permissionNames()
    .map((name) => renderPermission(organizationId, name))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
