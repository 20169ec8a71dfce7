import { createHash } from "node:crypto";
import { decodeJwt } from "jose";
import type {
  Callers,
  KeyEnd,
  KnownAccount,
  KnownConversation,
  KnownKey,
} from "../../data/accounts/callers.ts";
import { isLiveToken } from "../../data/accounts/live-tokens.ts";
import type { Clock } from "../../lib/clock.ts";
import { isId } from "../../lib/ids.ts";
import { ACCESS_TOKEN_ISSUER, type AccessTokens } from "./access-tokens.ts";
import type { OidcIssuer } from "./oidc.ts";

/** Verified identity behind a token. `limitedAs` is the key under which its requests are counted. */
export type Identified = { readonly limitedAs: string } & (
  | { readonly by: "apiKey" | "accessToken"; readonly key: KnownKey }
  | {
      readonly by: "oidc";
      readonly expiresAtMs: number;
      /** Account in the requested organization. `undefined` if no organization was named. */
      readonly account: KnownAccount | undefined;
    }
  | { readonly by: "boundToken"; readonly account: KnownAccount }
  | { readonly by: "liveToken"; readonly conversation: KnownConversation }
);

/**
 * Reason why a token was rejected. `unknown` covers every reason except those that are safe to reveal: a complete key that is no longer
 * valid, and a subject without an identity.
 */
export interface TokenRejection {
  readonly by: "nobody";
  readonly why: "unknown" | "expired" | "noIdentity" | KeyEnd;
}

/**
 * Identifies the caller behind a bearer token.
 *
 * @param named organization that the request names, in case the token names none
 */
export type Identify = (token: string, named?: string) => Promise<Identified | TokenRejection>;

export interface IdentifyDeps {
  readonly callers: Callers;
  readonly accessTokens: AccessTokens;
  readonly oidc: OidcIssuer | undefined;
  readonly clock: Clock;
}

const MAX_KEY_CHARS = 1_024;
const UNKNOWN: TokenRejection = { by: "nobody", why: "unknown" };

export function createIdentify({ callers, accessTokens, oidc, clock }: IdentifyDeps): Identify {
  const isActive = (key: KnownKey): boolean => key.expiresAtMs > clock();

  return async (token, named) => {
    const issuer = parseIssuer(token);
    if (issuer === ACCESS_TOKEN_ISSUER) {
      const id = await accessTokens.verify(token);
      if (id !== undefined && isId("idn", id)) {
        const account = await callers.findAccountByIdentity(id);
        if (account === undefined || account.provider !== oidc?.issuer) return UNKNOWN;
        return { by: "boundToken", limitedAs: account.id, account };
      }
      const key = id === undefined ? undefined : await callers.findKeyById(id);
      return key && isActive(key) ? { by: "accessToken", limitedAs: key.id, key } : UNKNOWN;
    }
    if (oidc !== undefined && issuer === oidc.issuer) {
      const verified = await oidc.verify(token);
      if (!verified) return UNKNOWN;
      const { subject, expiresAtMs, organizationId = named } = verified;
      if (organizationId === undefined) {
        const limitedAs = createHash("sha256").update(subject).digest("base64url");
        return { by: "oidc", limitedAs, expiresAtMs, account: undefined };
      }
      const account = await callers.findAccount(organizationId, oidc.issuer, subject);
      if (account === undefined) return { by: "nobody", why: "noIdentity" };
      return { by: "oidc", limitedAs: account.id, expiresAtMs, account };
    }
    if (isLiveToken(token)) {
      const conversation = await callers.findConversation(token);
      return conversation ? { by: "liveToken", limitedAs: conversation.id, conversation } : UNKNOWN;
    }
    if (token.length > MAX_KEY_CHARS) return UNKNOWN;
    const key = await callers.findKey(token);
    if (key !== undefined) {
      return isActive(key) ? { by: "apiKey", limitedAs: key.id, key } : { by: "nobody", why: "expired" };
    }
    return { by: "nobody", why: (await callers.findEnd(token)) ?? "unknown" };
  };
}

/** Returns the issuer that the token claims, before verification. Returns `undefined` if the token is not a JSON Web Token. */
function parseIssuer(token: string): string | undefined {
  if (!token.startsWith("ey")) return undefined;
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}
