import type { Context } from "hono";
import { bearerToken, callerOf, ORGANIZATION_HEADER } from "./authenticate.ts";
import { requirePermission } from "./authorize.ts";
import type { ApiEnv } from "./context.ts";
import type { Identify } from "./identify.ts";
import { ApiError } from "./problem.ts";

/**
 * Whether the caller of an answer that goes on may still have it: its token is in force, for the same organization, with that
 * permission.
 *
 * @throws UnavailableError when that cannot be known.
 */
export type StillAllowed = (c: Context<ApiEnv>, permission: string) => Promise<boolean>;

export function createStillAllowed({ identify }: { readonly identify: Identify }): StillAllowed {
  return async (c, permission) => {
    const identified = await identify(bearerToken(c.req.header("authorization")) ?? "");
    if (identified === undefined) return false;
    const before = c.get("caller");
    try {
      const caller = callerOf(identified, c.req.header(ORGANIZATION_HEADER));
      requirePermission({ ...before, ...caller }, permission);
      return caller.organizationId === before.organizationId;
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  };
}
