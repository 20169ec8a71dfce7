import { createHash } from "node:crypto";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { createId, timeOfId } from "../../lib/ids.ts";
import { listRows } from "../kit/references.ts";
import type { EntityOf } from "../kit/shape.ts";
import type { Permission } from "./permission-schema.ts";
import { role } from "./schema.ts";

/**
 * Renders a permission as an entity of an organization. No table stores permissions. The id and times are derived from
 * the organization's id and the name, so they never change. The permissions of a new resource therefore exist in every
 * organization without a migration.
 */
export function renderPermission(organizationId: string, name: string): Permission {
  const madeAtMs = timeOfId(organizationId);
  const digest = createHash("sha256").update(`${organizationId}/${name}`).digest().subarray(0, 8);
  const madeAt = formatTimestamp(madeAtMs);
  return {
    id: createId("perm", madeAtMs, digest),
    name,
    description: describe(name),
    organizationId,
    createdAt: madeAt,
    updatedAt: madeAt,
  };
}

/** Returns a function that renders the permissions of a role, keyed by name. It renders each permission only once for all roles. */
export function rolePermissions(): (row: Row<"roles">) => { permissions: Record<string, Permission> } {
  const made = new Map<string, Permission>();
  const permission = (organizationId: string, name: string): Permission => {
    const key = `${organizationId}/${name}`;
    const one = made.get(key) ?? renderPermission(organizationId, name);
    made.set(key, one);
    return one;
  };
  return ({ organizationId, permissions }) => ({
    permissions: Object.fromEntries(permissions.map((name) => [name, permission(organizationId, name)])),
  });
}

export function renderRoles(rows: readonly Row<"roles">[]): EntityOf<typeof role>[] {
  const inside = rolePermissions();
  return rows.map((row) => role.render(row, inside(row)));
}

type Held = Pick<Row<"memberships">, "permissions" | "roleIds">;

/** Returns a function that renders the permissions and roles of a member. @param roles all roles of all members that will be rendered */
export function heldPermissions(organizationId: string, roles: readonly Row<"roles">[]) {
  const rendered = renderRoles(roles);
  return ({ permissions, roleIds }: Held) => ({
    permissions: permissions.map((name) => renderPermission(organizationId, name)),
    roles: rendered.filter(({ id }) => roleIds.includes(id)),
  });
}

export const rolesOf = (
  db: Queryable,
  scope: Pick<Caller, "organizationId">,
  memberships: readonly Held[],
): Promise<Row<"roles">[]> =>
  listRows(
    db,
    scope,
    "roles",
    "id",
    memberships.flatMap(({ roleIds }) => roleIds),
  );

/** `knowledgeBases.read` → `Read everything under /knowledge-bases.` */
function describe(name: string): string {
  if (name === "*") return "Read and change everything.";
  const [noun = "", verb] = name.split(".");
  const path = noun.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `${verb === "read" ? "Read" : "Change"} everything under /${path}.`;
}
