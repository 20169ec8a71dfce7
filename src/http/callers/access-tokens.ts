import { createSecretKey } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Clock } from "../../lib/clock.ts";

/** How long an access token may be used, unless its key ends before. */
export const ACCESS_TOKEN_SECONDS = 900;

/** Names Inlet in its own tokens; the key, which every cluster has for itself, tells clusters apart. */
export const ACCESS_TOKEN_ISSUER = "inlet";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";

/**
 * Access tokens: each stands for an API key, or for an identity of another issuer's subject in one organization. It holds
 * nothing but the id of that, and is worth what that is worth when the token is used.
 */
export interface AccessTokens {
  readonly issue: (id: string, forSeconds: number) => Promise<string>;
  /** The id of the key or identity that the token stands for; undefined where it is not ours, was changed, or has expired. */
  readonly verify: (token: string) => Promise<string | undefined>;
}

/**
 * JSON Web Tokens (RFC 7519) of the type `at+jwt` (RFC 9068), signed with the cluster's own key by one algorithm, whatever
 * a token says of itself. Nobody but the gateways of one cluster has to verify them, so the key is shared, not public.
 */
export function createAccessTokens(options: { readonly key: Buffer; readonly clock: Clock }): AccessTokens {
  const { clock } = options;
  const key = createSecretKey(options.key);
  return {
    async issue(id, forSeconds) {
      const nowSeconds = Math.floor(clock() / 1_000);
      return new SignJWT()
        .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
        .setIssuer(ACCESS_TOKEN_ISSUER)
        .setAudience(ACCESS_TOKEN_ISSUER)
        .setSubject(id)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + forSeconds)
        .sign(key);
    },
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          typ: TYPE,
          issuer: ACCESS_TOKEN_ISSUER,
          audience: ACCESS_TOKEN_ISSUER,
          requiredClaims: ["sub", "exp"],
          currentDate: new Date(clock()),
        });
        return payload.sub;
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined;
        throw error;
      }
    },
  };
}
