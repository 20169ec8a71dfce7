import type { MiddlewareHandler } from "hono";
import type { RateLimiter } from "../../bus/limits/rate-limiter.ts";
import type { ApiEnv, Caller } from "../context.ts";
import { rateLimitError } from "../limits.ts";
import { ApiError } from "../problem.ts";
import type { FailedTokens } from "./failed-tokens.ts";
import type { Identified, Identify, TokenRejection } from "./identify.ts";

export interface AuthenticateDeps {
  readonly identify: Identify;
  /** Limits each key, each account that comes without one, and each live conversation. */
  readonly requests: RateLimiter;
  readonly failedTokens: FailedTokens;
}

/** Names the organization that the bearer of another issuer's token calls for. */
export const ORGANIZATION_HEADER = "X-Organization-Id";

/**
 * Lets in who brings a valid bearer token, within its limit, and says for the rest of the request who that is.
 *
 * @throws ApiError 401, 429, 403 where it is not clear for which organization an account calls; UnavailableError where it
 * cannot be known who it is.
 */
export function authenticate(deps: AuthenticateDeps): MiddlewareHandler<ApiEnv> {
  const { identify, requests, failedTokens } = deps;
  return async (c, next) => {
    const { network } = c.get("client");
    const header = c.req.header("authorization");
    const token = bearerToken(header);
    if (token === undefined)
      throw unauthenticated("Bearer", header === undefined ? MESSAGES.missing : MESSAGES.malformed);
    const named = c.req.header(ORGANIZATION_HEADER);
    const identified = await failedTokens.lookUp(network, token, () => identify(token, named));
    if (identified === undefined) throw tooManyGuesses(failedTokens.stateOf(network));
    if (identified.by === "nobody") {
      const state = await failedTokens.note(network, token);
      c.set("limitState", state);
      if (!state.allowed) throw tooManyGuesses(state);
      throw unauthenticated('Bearer error="invalid_token"', MESSAGES[identified.why]);
    }
    const state = await requests.take(identified.limitedAs);
    c.set("limitState", state);
    if (!state.allowed) throw rateLimitError(state, "This key has asked for too much; wait.");
    const caller = resolveCaller(identified, named);
    c.set("caller", { ...caller, requestId: c.get("requestId") });
    await next();
  };
}

/** The token of `Authorization: Bearer <token>` (RFC 6750, section 2.1); undefined where there is none. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
}

const FORM = "`Authorization: Bearer <API key or access token>`";

/** That a key was one is said to callers who have all of it; to others it is unknown. */
const MESSAGES: Readonly<Record<TokenRejection["why"] | "missing" | "malformed", string>> = {
  missing: `A bearer token is needed: send the header ${FORM}.`,
  malformed: `The header Authorization is not of the form ${FORM}.`,
  unknown: "This bearer token is not known; access tokens end after fifteen minutes, or with their key.",
  expired: "This API key has expired.",
  noIdentity: "The organization has no identity of an active account for the subject of this token.",
  revoked: "This API key was revoked.",
  disabled: "The account of this API key is not active.",
};

const unauthenticated = (challenge: string, message: string): ApiError =>
  new ApiError("unauthenticated", message, { headers: { "www-authenticate": challenge } });

const tooManyGuesses = (state: Parameters<typeof rateLimitError>[0]): ApiError =>
  rateLimitError(state, "Too many wrong tokens came from this address; wait.");

/**
 * A token calls for its own organization, which the header may repeat; another issuer's token may name none.
 *
 * @throws ApiError 403 where the header names another, or the account is no member
 */
export function resolveCaller(identified: Identified, named: string | undefined): Omit<Caller, "requestId"> {
  const caller = createCaller(identified);
  if (named !== undefined && named !== caller.organizationId) throw notAMember();
  return caller;
}

function createCaller(identified: Identified): Omit<Caller, "requestId"> {
  switch (identified.by) {
    case "apiKey":
    case "accessToken": {
      const { id: keyId, accountId, organizationId, spaceId, permissions } = identified.key;
      return { by: identified.by, keyId, accountId, organizationId, defaultSpaceId: spaceId, permissions };
    }
    case "liveToken": {
      const { id, accountId, organizationId } = identified.conversation;
      const confinedTo = { param: "conversationId", id };
      return { by: "liveToken", ...KEYLESS, accountId, organizationId, permissions: NONE, confinedTo };
    }
    case "oidc":
    case "boundToken": {
      const by = identified.by === "oidc" ? "oidc" : "accessToken";
      const { account } = identified;
      if (account === undefined)
        return { by, ...KEYLESS, accountId: "", organizationId: "", permissions: NONE, isUnplaced: true };
      const { id: accountId, organizationId, permissions } = account;
      if (permissions === undefined) throw notAMember();
      return { by, ...KEYLESS, accountId, organizationId, permissions };
    }
    default:
      return identified satisfies never;
  }
}

const KEYLESS = { keyId: null, defaultSpaceId: null } as const;
const NONE: ReadonlySet<string> = new Set();

export const notAMember = (): ApiError =>
  new ApiError("permission_denied", "You do not belong to that organization.");
