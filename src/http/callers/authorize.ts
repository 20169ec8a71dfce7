import type { Context } from "hono";
import type { ApiEnv, Caller } from "../context.ts";
import { ApiError } from "../problem.ts";
import { bearerToken, resolveCaller, ORGANIZATION_HEADER } from "./authenticate.ts";
import type { Identify } from "./identify.ts";

/** Holds every permission, of today and of tomorrow. */
export const ALL_PERMISSIONS = "*";

/** @throws ApiError 403 that names the permission. */
export function requirePermission(caller: Caller, permission: string): void {
  if (holds(caller, permission)) return;
  throw new ApiError("permission_denied", `This needs the permission ${permission}.`);
}

/** The permission that a route demands of its caller. */
export interface RoutePermission {
  /** Null: nothing. */
  readonly permission: string | null;
  /** The parameter of its path by which confined tokens may come in. */
  readonly confined?: string;
  /** Another issuer's token may come in that names no organization. */
  readonly unplaced?: true;
}

/** @throws ApiError 403 that names the permission, or says that the token is for something else. */
export function requireAllowed(caller: Caller, { permission, confined, unplaced }: RoutePermission): void {
  if (caller.isUnplaced && !unplaced)
    throw new ApiError(
      "permission_denied",
      `Name your organization in ${ORGANIZATION_HEADER}, or get a token for it by POST /auth/tokens.`,
    );
  if (caller.confinedTo !== undefined) {
    if (caller.confinedTo.param === confined) return;
    throw new ApiError(
      "permission_denied",
      `This token opens ${caller.confinedTo.param} ${caller.confinedTo.id} alone.`,
    );
  }
  if (permission !== null) requirePermission(caller, permission);
}

/**
 * Nobody grants, or takes from others, more than they hold. A role is granted with the permissions that it has.
 *
 * @throws ApiError 403 that names the permissions that the caller lacks
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
    `You can only ${act} permissions that you hold; you lack ${named}.`,
  );
}

const MAX_NAMED = 20;

/** True of a caller who has it. */
export const holds = ({ permissions }: Pick<Caller, "permissions">, permission: string): boolean =>
  permissions.has(ALL_PERMISSIONS) || permissions.has(permission);

/** All permissions that can be granted: those that routes ask for (null: none), and the one that holds them all. */
export function permissionCatalog(routePermissions: Iterable<string | null>): readonly string[] {
  const names = [...routePermissions].filter((name) => name !== null);
  return [ALL_PERMISSIONS, ...new Set(names.sort())];
}

/**
 * True while the caller of an answer that goes on may still have it: its token is in force, for the same organization, with that
 * permission.
 *
 * @throws UnavailableError when that cannot be known.
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
