import type { Context } from "hono";
import type { ApiEnv, Caller } from "../context.ts";
import { ApiError } from "../problem.ts";
import { bearerToken, ORGANIZATION_HEADER, resolveCaller } from "./authenticate.ts";
import type { Identify } from "./identify.ts";

/** The permission that includes every other one, even those added later. */
export const ALL_PERMISSIONS = "*";

/** @throws ApiError 403 that names the missing permission */
export function requirePermission(caller: Caller, permission: string): void {
  if (holds(caller, permission)) return;
  throw new ApiError("permission_denied", `This requires the permission ${permission}.`);
}

/** The permission that a route requires, and the kinds of restricted tokens that it accepts. */
export interface RoutePermission {
  /** `null` if the route requires no permission. */
  readonly permission: string | null;
  /** Name of the path parameter that must contain the resource of a confined token. Without it, confined tokens cannot use the route. */
  readonly confined?: string;
  /** Set if the route accepts tokens of another issuer that do not name an organization. */
  readonly unplaced?: true;
}

/**
 * Checks that the caller may use a route.
 *
 * @throws ApiError 403 that names the missing permission, or says that the token is for other routes
 */
export function requireAllowed(caller: Caller, { permission, confined, unplaced }: RoutePermission): void {
  if (caller.isUnplaced && !unplaced)
    throw new ApiError(
      "permission_denied",
      `Name your organization in ${ORGANIZATION_HEADER}, or request a token for it with POST /auth/tokens.`,
    );
  if (caller.confinedTo !== undefined) {
    if (caller.confinedTo.param === confined) return;
    throw new ApiError(
      "permission_denied",
      `This token is only valid for ${caller.confinedTo.param} ${caller.confinedTo.id}.`,
    );
  }
  if (permission !== null) requirePermission(caller, permission);
}

/**
 * Checks that callers only grant or withdraw permissions that they have themselves. A role counts with all its permissions.
 *
 * @throws ApiError 403 that names the missing permissions
 */
export function requireHeld(
  caller: Caller,
  permissions: Iterable<string>,
  act: "grant" | "take away" = "grant",
): void {
  const lacking = [...new Set(permissions)].filter((permission) => !holds(caller, permission));
  if (lacking.length === 0) return;
  const named = lacking.slice(0, MAX_NAMED).join(", ") + (lacking.length > MAX_NAMED ? ", …" : "");
  throw new ApiError(
    "permission_denied",
    `You can only ${act} permissions that you have. You lack ${named}.`,
  );
}

const MAX_NAMED = 20;

/** Returns whether the caller has the permission. */
export const holds = ({ permissions }: Pick<Caller, "permissions">, permission: string): boolean =>
  permissions.has(ALL_PERMISSIONS) || permissions.has(permission);

/**
 * Returns all permissions that can be granted: those that routes require, and `*`.
 *
 * @param routePermissions the permissions of all routes; `null` for a route that requires none
 */
export function permissionCatalog(routePermissions: Iterable<string | null>): readonly string[] {
  const names = [...routePermissions].filter((name) => name !== null);
  return [ALL_PERMISSIONS, ...new Set(names.sort())];
}

/**
 * Returns whether the caller of a streaming response may still receive it. The caller's token must still be valid for the same organization
 * and still have the permission.
 *
 * @throws UnavailableError when this cannot be checked at the moment
 */
export type StillAllowed = (c: Context<ApiEnv>, permission: string) => Promise<boolean>;

export function createStillAllowed({ identify }: { readonly identify: Identify }): StillAllowed {
  return async (c, permission) => {
    const named = c.req.header(ORGANIZATION_HEADER);
    const identified = await identify(bearerToken(c.req.header("authorization")) ?? "", named);
    if (identified.by === "nobody") return false;
    const before = c.get("caller");
    try {
      const caller = resolveCaller(identified, named);
      requirePermission({ ...before, ...caller }, permission);
      return caller.organizationId === before.organizationId;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  };
}
