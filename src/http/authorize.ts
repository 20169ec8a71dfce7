import type { Caller } from "./context.ts";
import { ApiError } from "./problem.ts";

const ALL = "*";

/** @throws ApiError 403 that names the permission. */
export function requirePermission(caller: Caller, permission: string): void {
  if (caller.permissions.has(ALL) || caller.permissions.has(permission)) return;
  throw new ApiError("permission_denied", `This needs the permission ${permission}.`);
}
