import { z } from "zod";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { requireGrantable } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { invalidParameters, notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import { isId } from "../../lib/ids.ts";

export interface IamDeps {
  readonly db: Queryable;
  readonly clock: Clock;
  /** The names of all permissions that there are, `*` among them, in order. */
  readonly permissionNames: () => readonly string[];
}

/** A key or a membership may do all of both. */
export interface Grant {
  readonly permissions: readonly string[];
  readonly roleIds: readonly string[];
}

export const permissionsInput = z
  .array(z.string())
  .max(500)
  .default([])
  .meta({
    description: "Names of permissions, held beside those of the roles; who gives them must hold them.",
    example: ["apps.read"],
  });

export const roleIdsInput = z
  .array(z.string())
  .max(100)
  .default([])
  .meta({ description: "Roles; who gives them must hold their permissions.", example: [] });

/**
 * The permissions, each once and in order, if the caller may give away those that are not in `before`.
 *
 * @throws ApiError 400 where there is no such permission, 403 where the caller does not hold it
 */
export function grantPermissions(
  { permissionNames }: IamDeps,
  caller: Caller,
  permissions: readonly string[],
  before: readonly string[] = [],
): string[] {
  const known = permissionNames();
  const findings = permissions.flatMap((name, index) =>
    known.includes(name) || before.includes(name)
      ? []
      : [{ path: `permissions[${index}]`, message: "is not the name of a permission" }],
  );
  if (findings.length > 0) throw invalidParameters(findings);
  requireGrantable(caller, without(permissions, before));
  return sorted(permissions);
}

/**
 * The same with roles, which nobody deletes until the transaction ends.
 *
 * @throws ApiError 400, 403, and 404 where the caller's organization has no such role
 */
export async function grant(
  trx: Trx,
  deps: IamDeps,
  caller: Caller,
  { permissions, roleIds }: Grant,
  before: Grant = { permissions: [], roleIds: [] },
): Promise<{ permissions: string[]; roleIds: string[] }> {
  const granted = grantPermissions(deps, caller, permissions, before.permissions);
  const roles = await getRoles(trx, caller, without(roleIds, before.roleIds));
  requireGrantable(caller, permissionsOf({ permissions: [], roles }));
  return { permissions: granted, roleIds: sorted(roleIds) };
}

/** All that a key or membership may do. */
export async function permissionsOfGrant(
  trx: Trx,
  caller: Caller,
  { permissions, roleIds }: Grant,
): Promise<readonly string[]> {
  return permissionsOf({ permissions, roles: await getRoles(trx, caller, roleIds) });
}

async function getRoles(
  trx: Trx,
  { organizationId }: Caller,
  ids: readonly string[],
): Promise<readonly Row<"roles">[]> {
  if (ids.length === 0) return [];
  const roles = await trx
    .selectFrom("roles")
    .selectAll()
    .where("organizationId", "=", organizationId)
    .where("id", "in", ids.filter((id) => isId("role", id)).concat(""))
    .orderBy("id")
    .forKeyShare()
    .execute();
  if (roles.length < new Set(ids).size) throw notFound("role");
  return roles;
}

const permissionsOf = ({
  permissions,
  roles,
}: {
  readonly permissions: readonly string[];
  readonly roles: readonly Row<"roles">[];
}): readonly string[] => sorted([...permissions, ...roles.flatMap((role) => role.permissions)]);

const sorted = (names: readonly string[]): string[] => [...new Set(names)].sort();
const without = (names: readonly string[], known: readonly string[]): readonly string[] =>
  names.filter((name) => !known.includes(name));
