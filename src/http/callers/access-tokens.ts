import { createSecretKey } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Clock } from "../../lib/clock.ts";

/** Maximum lifetime of an access token. It ends earlier if its key does. */
export const ACCESS_TOKEN_SECONDS = 900;

/** Issuer of Inlet's own tokens. It is the same for all clusters. The signing key tells them apart. */
export const ACCESS_TOKEN_ISSUER = "inlet";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";

/**
 * Access tokens. Each refers to an API key, or to the identity of another issuer's subject in one organization. The token contains only
 * that
 * id, and its permissions are read when it is used.
 */
export interface AccessTokens {
  readonly issue: (id: string, forSeconds: number) => Promise<string>;
  /** Returns the id of the key or identity. Returns `undefined` if the token is foreign, modified or expired. */
  readonly verify: (token: string) => Promise<string | undefined>;
}

/**
 * Creates JSON Web Tokens (RFC 7519) of type `at+jwt` (RFC 9068). The algorithm is fixed, regardless of the token's header. Only gateways
 * of
 * the cluster verify them, so a shared key is enough.
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
