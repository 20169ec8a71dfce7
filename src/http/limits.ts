import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress, ClientAddressOf } from "../lib/addresses/client-address.ts";
import type { FailedTokens } from "./callers/failed-tokens.ts";
import type { ApiEnv } from "./context.ts";
import { type ApiError, createApiError, type ErrorResponse } from "./errors.ts";

export const limitHeaders = ({ limit, remaining, resetSeconds }: RateLimitState): Record<string, string> => ({
  "RateLimit-Limit": String(limit),
  "RateLimit-Remaining": String(remaining),
  "RateLimit-Reset": String(resetSeconds),
});

export const rateLimitResponse = (state: RateLimitState, message: string): ErrorResponse => ({
  code: "rate_limited",
  message,
  headers: { ...limitHeaders(state), "Retry-After": String(state.resetSeconds) },
});

export const rateLimitError = (state: RateLimitState, message: string): ApiError =>
  createApiError(rateLimitResponse(state, message));

export interface ShowLimitsDeps {
  readonly clientAddressOf: ClientAddressOf;
  readonly failedTokens: FailedTokens;
}

/**
 * Creates middleware that adds the remaining rate limit to every response. Before authentication, this is the limit for invalid tokens from
 * the client's network.
 */
export function showLimits({ clientAddressOf, failedTokens }: ShowLimitsDeps): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const client = clientOf(c, clientAddressOf);
    c.set("client", client);
    c.set("limitState", failedTokens.stateOf(client.network));
    await next();
    for (const [name, value] of Object.entries(limitHeaders(c.get("limitState")))) c.header(name, value);
  };
}

function clientOf(c: Context, clientAddressOf: ClientAddressOf): ClientAddress {
  const bindings = c.env as Partial<HttpBindings> | undefined;
  return clientAddressOf(bindings?.incoming?.socket?.remoteAddress, c.req.header("x-forwarded-for"));
}
