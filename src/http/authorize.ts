import type { Caller } from "./context.ts";
import { ApiError } from "./problem.ts";

/** Holds every permission, of today and of tomorrow. */
export const ALL_PERMISSIONS = "*";

/** @throws ApiError 403 that names the permission. */
export function requirePermission(caller: Caller, permission: string): void {
  if (holds(caller, permission)) return;
  throw new ApiError("permission_denied", `This needs the permission ${permission}.`);
}

/** What a route asks of its caller. */
export interface Asked {
  /** Null: nothing. */
  readonly permission: string | null;
  /** The parameter of its path by which confined tokens may come in. */
  readonly confined?: string;
}

/** @throws ApiError 403 that names the permission, or says that the token is for something else. */
export function requireAllowed(caller: Caller, { permission, confined }: Asked): void {
  if (caller.confinedTo !== undefined) {
    if (caller.confinedTo.param === confined) return;
    throw new ApiError("permission_denied", "This token is good for one thing alone, and this is another.");
  }
  if (permission !== null) requirePermission(caller, permission);
}

/**
 * Nobody grants more than they hold. A role is granted with the permissions that it has.
 *
 * @throws ApiError 403 that names what the caller lacks
 */
export function requireGrantable(caller: Caller, permissions: Iterable<string>): void {
  const lacking = [...new Set(permissions)].filter((permission) => !holds(caller, permission));
  if (lacking.length === 0) return;
  const named = lacking.slice(0, MAX_NAMED).join(", ") + (lacking.length > MAX_NAMED ? ", …" : "");
  throw new ApiError("permission_denied", `You can only grant permissions that you hold; you lack ${named}.`);
}

const MAX_NAMED = 20;

const holds = ({ permissions }: Caller, permission: string): boolean =>
  permissions.has(ALL_PERMISSIONS) || permissions.has(permission);

/** All permissions that can be granted: those that routes ask for (null: none), and the one that holds them all. */
export function permissionCatalog(asked: Iterable<string | null>): readonly string[] {
  const names = [...asked].filter((name) => name !== null);
  return [ALL_PERMISSIONS, ...new Set(names.sort())];
}
