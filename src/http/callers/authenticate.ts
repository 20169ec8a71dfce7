import type { MiddlewareHandler } from "hono";
import type { RateLimiter } from "../../bus/limits/rate-limiter.ts";
import type { ApiEnv, Caller } from "../context.ts";
import { ApiError } from "../errors.ts";
import { rateLimitError } from "../limits.ts";
import type { FailedTokens } from "./failed-tokens.ts";
import type { Identified, Identify, TokenRejection } from "./identify.ts";

export interface AuthenticateDeps {
  readonly identify: Identify;
  /** Rate limit of requests. It counts per API key, or per account for tokens that another issuer has signed. */
  readonly requests: RateLimiter;
  readonly failedTokens: FailedTokens;
}

/** Header that selects an organization, for callers whose token does not name one. */
export const ORGANIZATION_HEADER = "X-Organization-Id";

/**
 * Creates middleware that authenticates the bearer token, applies the caller's rate limit and sets `caller`.
 *
 * @throws ApiError 401, 429, or 403 when the organization of an account is ambiguous
 * @throws UnavailableError when the token cannot be checked right now
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
    if (!state.allowed)
      throw rateLimitError(state, "This caller has reached its request rate limit. Try again later.");
    const caller = resolveCaller(identified, named);
    c.set("caller", { ...caller, requestId: c.get("requestId") });
    await next();
  };
}

/** Returns the token of an `Authorization: Bearer <token>` header (RFC 6750, section 2.1), or `undefined`. */
export function bearerToken(header: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
}

const FORM = "`Authorization: Bearer <API key or access token>`";

/**
 * Error messages by rejection reason. Only callers with the complete key learn that it was revoked or has expired; others get "unknown".
 */
const MESSAGES: Readonly<Record<TokenRejection["why"] | "missing" | "malformed", string>> = {
  missing: `A bearer token is required. Send the header ${FORM}.`,
  malformed: `The Authorization header must have the form ${FORM}.`,
  unknown: "This bearer token is unknown. Access tokens expire after 15 minutes, or with their API key.",
  expired: "This API key has expired.",
  noIdentity: "The organization has no active account whose identity matches the subject of this token.",
  revoked: "This API key was revoked.",
  disabled: "The account of this API key is not active.",
};

const unauthenticated = (challenge: string, message: string): ApiError =>
  new ApiError("unauthenticated", message, { headers: { "www-authenticate": challenge } });

const tooManyGuesses = (state: Parameters<typeof rateLimitError>[0]): ApiError =>
  rateLimitError(state, "Too many wrong tokens were sent from this address. Try again later.");

/**
 * Returns the caller that a verified token identifies. Rejects a token that is bound to another organization.
 *
 * @param named value of the `X-Organization-Id` header
 * @throws ApiError 403 when the header names another organization, or the account is not a member
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
  new ApiError("permission_denied", "You are not a member of that organization.");
