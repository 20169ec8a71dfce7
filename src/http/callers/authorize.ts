import type { Context } from "hono";
import type { ApiEnv, Caller } from "../context.ts";
import { ApiError } from "../errors.ts";
import { bearerToken, ORGANIZATION_HEADER, resolveCaller } from "./authenticate.ts";
import type { Identify } from "./identify.ts";

/** Grants every permission, including permissions that later versions add. */
export const ALL_PERMISSIONS = "*";

/** @throws ApiError 403 that names the missing permission */
export function requirePermission(caller: Caller, permission: string): void {
  if (holds(caller, permission)) return;
  throw new ApiError("permission_denied", `This requires the permission ${permission}.`);
}

export interface RoutePermission {
  /** `null` for a route that requires no permission. */
  readonly permission: string | null;
  /** Path parameter that must match the only resource that a restricted token allows. If omitted, the route rejects restricted tokens. */
  readonly confined?: string;
  /** Whether the route accepts tokens that name no organization. Only external issuers sign such tokens. */
  readonly unplaced?: true;
}

/**
 * Checks that the caller may use a route.
 *
 * @throws ApiError 403 that names the missing permission or explains the token's restriction
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
 * Checks that the caller has every permission that it grants to or withdraws from someone else. Roles are expanded to their permissions.
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

export const holds = ({ permissions }: Pick<Caller, "permissions">, permission: string): boolean =>
  permissions.has(ALL_PERMISSIONS) || permissions.has(permission);

/**
 * Returns all permissions that can be granted: the permissions that routes require, and `*`.
 *
 * @param routePermissions permissions of all routes, `null` for a route that requires none
 */
export function permissionCatalog(routePermissions: Iterable<string | null>): readonly string[] {
  const names = [...routePermissions].filter((name) => name !== null);
  return [ALL_PERMISSIONS, ...new Set(names.sort())];
}

/**
 * Returns whether a streaming response may continue, which requires that the caller's token is still valid and still has the permission.
 *
 * @throws UnavailableError when this cannot be checked right now
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
