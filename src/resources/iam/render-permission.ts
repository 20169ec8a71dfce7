import { createHash } from "node:crypto";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { createId, timeOfId } from "../../lib/ids.ts";
import { listRows } from "../kit/references.ts";
import type { EntityOf } from "../kit/shape.ts";
import { type Permission, role } from "./iam-entities.ts";

/**
 * A permission as its organization's entity. It has no row: id and times follow from the organization's id and the name, so
 * that they stay what they are, and a new resource brings its permissions to every organization by being there.
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

/** The permissions of roles by their names; each is made once for all of them. */
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

/** The permissions and roles that members of one organization hold. @param roles those of the organization that are among theirs, or more */
export function heldPermissions(organizationId: string, roles: readonly Row<"roles">[]) {
  const rendered = renderRoles(roles);
  return ({ permissions, roleIds }: Held) => ({
    permissions: permissions.map((name) => renderPermission(organizationId, name)),
    roles: rendered.filter(({ id }) => roleIds.includes(id)),
  });
}

/** The roles that memberships name. */
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

/** `knowledgeBases.read` → `See what is below /knowledge-bases.` */
function describe(name: string): string {
  if (name === "*") return "See and change everything.";
  const [noun = "", verb] = name.split(".");
  const path = noun.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `${verb === "read" ? "See" : "Change"} what is below /${path}.`;
}
