import { createSecretKey } from "node:crypto";
import { errors, jwtVerify, SignJWT } from "jose";
import type { Clock } from "../../lib/clock.ts";

/** Maximum lifetime of an access token, in seconds. The token expires earlier if its API key expires earlier. */
export const ACCESS_TOKEN_SECONDS = 900;

/** Maximum time after the sign-in in which an access token can be exchanged for a new one, in seconds. */
export const SIGN_IN_SECONDS = 12 * 60 * 60;

/** Issuer claim of Inlet's own access tokens. It is the same in all clusters, because the signing key tells clusters apart. */
export const ACCESS_TOKEN_ISSUER = "inlet";

const ALGORITHM = "HS256";
const TYPE = "at+jwt";
/** Claim with the time of the sign-in in seconds (OpenID Connect Core, section 2). Each renewal copies it. */
const SIGN_IN_CLAIM = "auth_time";

/** Contents of a valid access token. */
export interface AccessToken {
  /** Id of the API key or user identity. */
  readonly id: string;
  /** Time at which the first token of this sign-in was issued for an API key or an issuer's token. */
  readonly signedInAtMs: number;
}

/**
 * Issues and verifies access tokens. Permissions are read from the database on each use, so that changes also apply to tokens already
 * issued.
 */
export interface AccessTokens {
  /** @param signedInAtMs time of the sign-in, if the new token renews another one. Defaults to now. */
  readonly issue: (id: string, forSeconds: number, signedInAtMs?: number) => Promise<string>;
  /** Returns the contents of a token. Returns `undefined` if the token is invalid or expired. */
  readonly open: (token: string) => Promise<AccessToken | undefined>;
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

  async function open(token: string): Promise<AccessToken | undefined> {
    try {
      const { payload } = await jwtVerify(token, key, {
        algorithms: [ALGORITHM],
        typ: TYPE,
        issuer: ACCESS_TOKEN_ISSUER,
        audience: ACCESS_TOKEN_ISSUER,
        requiredClaims: ["sub", "exp"],
        currentDate: new Date(clock()),
      });
      const { sub: id, iat = 0, [SIGN_IN_CLAIM]: signedInAt } = payload;
      if (id === undefined) return undefined;
      // Earlier versions issued tokens without the claim, and only at a sign-in.
      return { id, signedInAtMs: (typeof signedInAt === "number" ? signedInAt : iat) * 1_000 };
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }

  return {
    open,
    verify: async (token) => (await open(token))?.id,
    async issue(id, forSeconds, signedInAtMs = clock()) {
      const nowSeconds = Math.floor(clock() / 1_000);
      return new SignJWT({ [SIGN_IN_CLAIM]: Math.floor(signedInAtMs / 1_000) })
        .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
        .setIssuer(ACCESS_TOKEN_ISSUER)
        .setAudience(ACCESS_TOKEN_ISSUER)
        .setSubject(id)
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + forSeconds)
        .sign(key);
    },
  };
}
