import { decodeJwt } from "jose";
import type { Callers, KnownAccount, KnownConversation, KnownKey } from "../data/accounts/callers.ts";
import { isLiveToken } from "../data/accounts/live-tokens.ts";
import type { Clock } from "../lib/clock.ts";
import { ACCESS_TOKEN_ISSUER, type AccessTokens } from "./access-tokens.ts";
import type { OidcIssuer } from "./oidc.ts";

/** Who a token says that it is, once that is believed. */
export type Identified =
  | { readonly by: "apiKey" | "accessToken"; readonly key: KnownKey }
  | { readonly by: "oidc"; readonly account: KnownAccount }
  | { readonly by: "liveToken"; readonly conversation: KnownConversation };

/** Undefined: the token lets nobody in. @throws UnavailableError when that cannot be known. */
export type Identify = (token: string) => Promise<Identified | undefined>;

export interface IdentifyDeps {
  readonly callers: Callers;
  readonly accessTokens: AccessTokens;
  /** Undefined: none is trusted. */
  readonly oidc: OidcIssuer | undefined;
  readonly clock: Clock;
}

const MAX_KEY_CHARS = 1_024;

/** Tells the kinds of bearer tokens apart by the issuer that they name, or their form; each is then believed by its own rules only. */
export function createIdentify({ callers, accessTokens, oidc, clock }: IdentifyDeps): Identify {
  const inForce = (by: "apiKey" | "accessToken", key: KnownKey | undefined): Identified | undefined =>
    key === undefined || key.expiresAtMs <= clock() ? undefined : { by, key };

  return async (token) => {
    const issuer = issuerOf(token);
    if (issuer === ACCESS_TOKEN_ISSUER) {
      const keyId = await accessTokens.verify(token);
      return keyId === undefined ? undefined : inForce("accessToken", await callers.findKeyById(keyId));
    }
    if (oidc !== undefined && issuer === oidc.issuer) {
      const subject = await oidc.verify(token);
      const account = subject === undefined ? undefined : await callers.findAccount(oidc.issuer, subject);
      return account && { by: "oidc", account };
    }
    if (isLiveToken(token)) {
      const conversation = await callers.findConversation(token);
      return conversation && { by: "liveToken", conversation };
    }
    if (token.length > MAX_KEY_CHARS) return undefined;
    return inForce("apiKey", await callers.findKey(token));
  };
}

/** Whose token it claims to be; undefined where it is no JSON Web Token. */
function issuerOf(token: string): string | undefined {
  if (!token.startsWith("ey")) return undefined;
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}
