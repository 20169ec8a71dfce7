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
import { ACCESS_TOKEN_ISSUER, type AccessTokens } from "./access-tokens.ts";
import type { OidcIssuer } from "./oidc.ts";

/** Who a token says that it is, once that is believed, and the id by which its requests are counted. */
export type Identified = { readonly limitedAs: string } & (
  | { readonly by: "apiKey" | "accessToken"; readonly key: KnownKey }
  | { readonly by: "oidc"; readonly account: KnownAccount }
  | { readonly by: "liveToken"; readonly conversation: KnownConversation }
);

/** A token that lets nobody in. `unknown` stands for all but a whole key that was one. */
export interface Refused {
  readonly by: "nobody";
  readonly why: "unknown" | "expired" | KeyEnd;
}

/** @throws UnavailableError when it cannot be known whose the token is */
export type Identify = (token: string) => Promise<Identified | Refused>;

export interface IdentifyDeps {
  readonly callers: Callers;
  readonly accessTokens: AccessTokens;
  /** Undefined: none is trusted. */
  readonly oidc: OidcIssuer | undefined;
  readonly clock: Clock;
}

const MAX_KEY_CHARS = 1_024;
const UNKNOWN: Refused = { by: "nobody", why: "unknown" };

/** Tells the kinds of bearer tokens apart by the issuer that they name, or their form; each is then believed by its own rules only. */
export function createIdentify({ callers, accessTokens, oidc, clock }: IdentifyDeps): Identify {
  const isInForce = (key: KnownKey): boolean => key.expiresAtMs > clock();

  return async (token) => {
    const issuer = issuerOf(token);
    if (issuer === ACCESS_TOKEN_ISSUER) {
      const keyId = await accessTokens.verify(token);
      const key = keyId === undefined ? undefined : await callers.findKeyById(keyId);
      return key && isInForce(key) ? { by: "accessToken", limitedAs: key.id, key } : UNKNOWN;
    }
    if (oidc !== undefined && issuer === oidc.issuer) {
      const subject = await oidc.verify(token);
      const account = subject === undefined ? undefined : await callers.findAccount(oidc.issuer, subject);
      return account ? { by: "oidc", limitedAs: account.id, account } : UNKNOWN;
    }
    if (isLiveToken(token)) {
      const conversation = await callers.findConversation(token);
      return conversation ? { by: "liveToken", limitedAs: conversation.id, conversation } : UNKNOWN;
    }
    if (token.length > MAX_KEY_CHARS) return UNKNOWN;
    const key = await callers.findKey(token);
    if (key !== undefined) {
      return isInForce(key) ? { by: "apiKey", limitedAs: key.id, key } : { by: "nobody", why: "expired" };
    }
    return { by: "nobody", why: (await callers.findEnd(token)) ?? "unknown" };
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
