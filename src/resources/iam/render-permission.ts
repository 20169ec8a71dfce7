import { createHash } from "node:crypto";
import { formatTimestamp } from "../../lib/clock.ts";
import { createId, timeOfId } from "../../lib/ids.ts";
import type { Permission } from "./iam-entities.ts";

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

export type RenderPermission = typeof renderPermission;

/** The same for many: each is made once. */
export function createPermissionRenderer(): RenderPermission {
  const made = new Map<string, Permission>();
  return (organizationId, name) => {
    const key = `${organizationId}/${name}`;
    const permission = made.get(key) ?? renderPermission(organizationId, name);
    made.set(key, permission);
    return permission;
  };
}

/** `knowledgeBases.read` → `See what is below /knowledge-bases.` */
function describe(name: string): string {
  if (name === "*") return "See and change everything.";
  const [noun = "", verb] = name.split(".");
  const path = noun.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return `${verb === "read" ? "See" : "Change"} what is below /${path}.`;
}
