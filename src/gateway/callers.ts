import type { RedisBus } from "../bus/connection/redis.ts";
import { createRateLimiters } from "../bus/limits/rate-limiter.ts";
import type { Config } from "../config/schema.ts";
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

/**
 * Maximum number of different invalid tokens per client address and minute. It allows for human mistakes but is too low for guessing
 * tokens.
 */
const FAILED_TOKENS_PER_MINUTE = 60;

export interface CallerPathDeps extends Pick<Foundation, "db" | "clock"> {
  readonly changes: ChangeSubscriptions;
  readonly keyring: Pick<Keyring, "accessTokenKey">;
  readonly redis: Pick<RedisBus, "call" | "callBuffer">;
  readonly clientAddressOf: ClientAddressOf;
  /** Maximum time to wait for Redis during a rate limit check, in ms. Defaults to the value in `createRateLimiters`. */
  readonly limiterTimeoutMs?: number;
  readonly config: Pick<
    Config,
    "oidcIssuer" | "oidcAudience" | "oidcOrganizationClaim" | "oidcOrganization" | "apiRequestsPerMinute"
  >;
}

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
