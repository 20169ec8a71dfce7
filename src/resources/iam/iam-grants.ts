import { sql } from "kysely";
import { z } from "zod";
import type { Trx } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { requireHeld } from "../../http/callers/authorize.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, invalidParameters, notFound } from "../../http/errors.ts";
import { isId } from "../../lib/ids.ts";
import { suggestNearest } from "../../lib/nearest.ts";
import type { Deps } from "../kit/deps.ts";

/** Permissions and roles of an API key or a membership. A role adds its own permissions. */
export interface Grant {
  readonly permissions: readonly string[];
  readonly roleIds: readonly string[];
}

export const permissionsInput = z
  .array(z.string())
  .max(500)
  .default([])
  .meta({
    description:
      "Permissions in addition to those of the roles. The caller must hold each permission that it adds.",
    example: ["apps.read"],
  });

export const roleIdsInput = z.array(z.string()).max(100).default([]).meta({
  description: "Ids of roles. The caller must hold all permissions of each role that it adds.",
  example: [],
});

/**
 * Checks that the caller may grant all permissions that `before` lacks, and returns them sorted without duplicates.
 * @throws ApiError 400 for an unknown permission; 403 for a permission that the caller does not hold
 */
export function grantPermissions(
  { permissionNames }: Deps,
  caller: Caller,
  permissions: readonly string[],
  before: readonly string[] = [],
): string[] {
  const known = permissionNames();
  const allowed = `must be one of ${known.join(", ")}`;
  const findings = permissions.flatMap((name, index) =>
    known.includes(name) || before.includes(name)
      ? []
      : [{ path: `permissions[${index}]`, message: allowed + suggestNearest(name, known) }],
  );
  if (findings.length > 0) throw invalidParameters(findings);
  requireHeld(caller, without(permissions, before));
  return sorted(permissions);
}

/**
 * Checks that the caller may grant the permissions and roles. Locks added roles against deletion until the transaction ends.
 * @throws ApiError 400, 403, or 404 if the caller's organization has no such role
 */
export async function grant(
  trx: Trx,
  deps: Deps,
  caller: Caller,
  { permissions, roleIds }: Grant,
  before: Grant = { permissions: [], roleIds: [] },
): Promise<{ permissions: string[]; roleIds: string[] }> {
  const granted = grantPermissions(deps, caller, permissions, before.permissions);
  const roles = await getRoles(trx, caller, without(roleIds, before.roleIds));
  requireHeld(caller, permissionsOf({ permissions: [], roles }));
  return { permissions: granted, roleIds: sorted(roleIds) };
}

export async function permissionsOfGrant(
  trx: Trx,
  caller: Caller,
  { permissions, roleIds }: Grant,
): Promise<readonly string[]> {
  return permissionsOf({ permissions, roles: await getRoles(trx, caller, roleIds) });
}

/**
 * Checks that the caller holds all permissions that the change from `before` to `after` removes. The check applies to
 * changed, revoked and deleted grants.
 * @throws ApiError 403
 */
export async function requireTakeable(
  trx: Trx,
  caller: Caller,
  before: Grant,
  after: Grant = { permissions: [], roleIds: [] },
): Promise<void> {
  const left = await permissionsOfGrant(trx, caller, after);
  requireHeld(caller, without(await permissionsOfGrant(trx, caller, before), left), "take away");
}

/** Returns the permissions that an account has in the caller's organization through its membership and its valid keys. */
export async function permissionsOfAccount(
  trx: Trx,
  caller: Caller,
  accountId: string,
  nowMs: number,
): Promise<readonly string[]> {
  const { organizationId } = caller;
  const memberships = trx
    .selectFrom("memberships")
    .select(["permissions", "roleIds"])
    .where("accountId", "=", accountId)
    .where("organizationId", "=", organizationId);
  const keys = trx
    .selectFrom("apiKeys")
    .select(["permissions", "roleIds"])
    .where("accountId", "=", accountId)
    .where("organizationId", "=", organizationId)
    .where("revokedAt", "is", null)
    .where((eb) => eb.or([eb("expiresAt", "is", null), eb("expiresAt", ">", new Date(nowMs))]));
  const grants = [...(await memberships.execute()), ...(await keys.execute())];
  return permissionsOfGrant(trx, caller, {
    permissions: grants.flatMap(({ permissions }) => permissions),
    roleIds: grants.flatMap(({ roleIds }) => roleIds),
  });
}

/** The key or account that is about to lose all permissions, or the role that is about to lose `*`. */
interface Losing {
  readonly keyId?: string;
  readonly accountId?: string;
  readonly roleId?: string;
}

/**
 * Checks that the organization keeps at least one valid key with `*` whose account is active. An advisory lock serializes these
 * checks, so that two requests cannot remove the last two keys together. Call it after locking all rows.
 *
 * @throws ApiError 409 if no such key would remain
 */
export async function requireOtherAdministrator(
  trx: Trx,
  { organizationId }: Caller,
  { keyId = "", accountId = "", roleId = "" }: Losing,
  nowMs: number,
): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`administrators/${organizationId}`}, 0))`.execute(
    trx,
  );
  const byRole = (except: string) => sql`EXISTS (
    SELECT FROM roles
    WHERE roles.id = ANY (api_keys.role_ids) AND roles.organization_id = api_keys.organization_id
      AND '*' = ANY (roles.permissions) AND roles.id <> ${except})`;
  const { rows } = await sql<{ readonly had: boolean; readonly keeps: boolean }>`
    SELECT count(*) > 0 AS had,
           count(*) FILTER (
             WHERE api_keys.id <> ${keyId} AND accounts.id <> ${accountId}
               AND ('*' = ANY (api_keys.permissions) OR ${byRole(roleId)})
           ) > 0 AS keeps
    FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id
    WHERE api_keys.organization_id = ${organizationId} AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > ${new Date(nowMs)}) AND accounts.status = 'active'
      AND ('*' = ANY (api_keys.permissions) OR ${byRole("")})`.execute(trx);
  const [found] = rows;
  if (found?.had && !found.keeps)
    throw conflict(
      "This would remove the organization's last API key with *. Create another API key with * first.",
    );
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
