import type { MiddlewareHandler } from "hono";
import type { KnownKey } from "../data/api-keys.ts";
import type { ApiEnv } from "./context.ts";
import { ApiError } from "./problem.ts";

export interface AuthenticateDeps {
  /** The key behind a token; undefined where it is not, or no longer, valid. @throws UnavailableError */
  readonly findKey: (token: string) => Promise<KnownKey | undefined>;
}

/** Lets in who brings a valid bearer token, and says for the rest of the request who that is. @throws ApiError 401 */
export function authenticate({ findKey }: AuthenticateDeps): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const token = bearerToken(c.req.header("authorization"));
    const key = token === undefined ? undefined : await findKey(token);
    if (!key) {
      throw new ApiError("unauthenticated", "A valid bearer token is needed.", {
        headers: { "www-authenticate": token === undefined ? "Bearer" : 'Bearer error="invalid_token"' },
      });
    }
    c.set("caller", {
      keyId: key.id,
      accountId: key.accountId,
      organizationId: key.organizationId,
      defaultSpaceId: key.spaceId,
      permissions: new Set(key.permissions),
    });
    await next();
  };
}

/** The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1); undefined where there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
}
