import { createSecretKey } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Clock } from "../../lib/clock.ts";

/** Maximum lifetime of an access token, in seconds. A token expires earlier if its API key does. */
export const ACCESS_TOKEN_SECONDS = 900;

/**
 * Issuer of Inlet's own access tokens. It is the same in all clusters. Tokens of other clusters are rejected because their signing key
 * differs.
 */
export const ACCESS_TOKEN_ISSUER = "inlet";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";

/**
 * Issues and verifies access tokens. A token belongs to an API key, or to the identity of another issuer's subject in one organization. It
 * only contains the id of that key or identity. The permissions are read each time the token is used.
 */
export interface AccessTokens {
  readonly issue: (id: string, forSeconds: number) => Promise<string>;
  /** Returns the id of the key or identity to which the token belongs. Returns `undefined` if the token is foreign, modified or expired. */
  readonly verify: (token: string) => Promise<string | undefined>;
}

/**
 * Creates access tokens as JSON Web Tokens (RFC 7519) of type `at+jwt` (RFC 9068). The algorithm is fixed, whatever the header of a token
 * says. Only gateways of the same cluster verify the tokens, so a shared key is enough.
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
