import { createSecretKey } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Clock } from "../../lib/clock.ts";

/** Maximum lifetime of an access token, in seconds. The token expires earlier if its API key expires earlier. */
export const ACCESS_TOKEN_SECONDS = 900;

/** Issuer claim of Inlet's own access tokens. It is the same in all clusters, because the signing key tells clusters apart. */
export const ACCESS_TOKEN_ISSUER = "inlet";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";

/**
 * Issues and verifies access tokens. Permissions are read from the database on each use, so that changes also apply to tokens already
 * issued.
 */
export interface AccessTokens {
  readonly issue: (id: string, forSeconds: number) => Promise<string>;
  /** Returns the id of the API key or user identity in the token. Returns `undefined` if the token is invalid or expired. */
  readonly verify: (token: string) => Promise<string | undefined>;
}

/**
 * Creates access tokens as JSON Web Tokens (RFC 7519) of type `at+jwt` (RFC 9068). The accepted algorithm is fixed, whatever a token's
 * header says. A shared signing key is enough, because only gateways of the same cluster verify the tokens.
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
