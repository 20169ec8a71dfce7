import type { RedisBus } from "../bus/connection/redis.ts";
import { createRateLimiters } from "../bus/limits/rate-limiter.ts";
import type { Config } from "../config.ts";
import { createCallers } from "../data/accounts/callers.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Keyring } from "../data/keyring/keyring.ts";
import { type AccessTokens, createAccessTokens } from "../http/callers/access-tokens.ts";
import type { AuthenticateDeps } from "../http/callers/authenticate.ts";
import { createFailedTokens } from "../http/callers/failed-tokens.ts";
import { createIdentify } from "../http/callers/identify.ts";
import { createOidcIssuer } from "../http/callers/oidc.ts";
import type { ShowLimitsDeps } from "../http/limits.ts";
import type { ClientAddressOf } from "../lib/addresses/client-address.ts";
import type { Foundation } from "./foundation.ts";

/** Number of different wrong tokens that one address may send per minute. A person sends far fewer, and guessing a token takes far more. */
const FAILED_TOKENS_PER_MINUTE = 60;

export interface CallerPathDeps extends Pick<Foundation, "db" | "clock"> {
  readonly changes: ChangeSubscriptions;
  readonly keyring: Pick<Keyring, "accessTokenKey">;
  readonly redis: Pick<RedisBus, "call" | "callBuffer">;
  readonly clientAddressOf: ClientAddressOf;
  /** Timeout of `createRateLimiters`, in milliseconds. */
  readonly limiterTimeoutMs?: number;
  readonly config: Pick<
    Config,
    "oidcIssuer" | "oidcAudience" | "oidcOrganizationClaim" | "oidcOrganization" | "apiRequestsPerMinute"
  >;
}

/** Identifies the callers of the management API and limits their requests. */
export interface CallerPath extends AuthenticateDeps, ShowLimitsDeps {
  readonly accessTokens: AccessTokens;
}

export function createCallerPath(deps: CallerPathDeps): CallerPath {
  const { db, changes, keyring, redis, clientAddressOf, clock, config } = deps;
  const callers = createCallers({ db });
  changes.subscribe({
    onChange: ({ kind }) => void (kind === "access" && callers.forget()),
    onReset: callers.forget,
  });
  const accessTokens = createAccessTokens({ key: keyring.accessTokenKey, clock });
  const { oidcIssuer: issuer, oidcAudience: audience } = config;
  const oidc =
    issuer === undefined || audience === undefined
      ? undefined
      : createOidcIssuer({
          issuer,
          audience,
          organizationClaim: config.oidcOrganizationClaim,
          organizationId: config.oidcOrganization,
          clock,
        });
  const limiter = createRateLimiters({ redis, timeoutMs: deps.limiterTimeoutMs });
  return {
    identify: createIdentify({ callers, accessTokens, oidc, clock }),
    requests: limiter({ windowSeconds: 60, name: "requests", limit: config.apiRequestsPerMinute }),
    failedTokens: createFailedTokens(
      limiter({ windowSeconds: 60, name: "failed-tokens", limit: FAILED_TOKENS_PER_MINUTE }),
    ),
    clientAddressOf,
    accessTokens,
  };
}
