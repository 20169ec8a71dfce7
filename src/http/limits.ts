import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import type { RateLimitState } from "../bus/limits/rate-limiter.ts";
import type { ClientAddress, ClientAddressOf } from "../lib/addresses/client-address.ts";
import type { FailedTokens } from "./callers/failed-tokens.ts";
import type { ApiEnv } from "./context.ts";
import { type ApiError, createApiError, type ErrorResponse } from "./problem.ts";

/** How much may still be asked for, in how many seconds the window begins anew. */
export const limitHeaders = ({ limit, remaining, resetSeconds }: RateLimitState): Record<string, string> => ({
  "RateLimit-Limit": String(limit),
  "RateLimit-Remaining": String(remaining),
  "RateLimit-Reset": String(resetSeconds),
});

/** 429, with the time after which it is worth trying again. */
export const rateLimitResponse = (state: RateLimitState, message: string): ErrorResponse => ({
  code: "rate_limited",
  message,
  headers: { ...limitHeaders(state), "Retry-After": String(state.resetSeconds) },
});

/** The same, to be thrown. */
export const rateLimitError = (state: RateLimitState, message: string): ApiError =>
  createApiError(rateLimitResponse(state, message));

export interface ShowLimitsDeps {
  readonly clientAddressOf: ClientAddressOf;
  readonly failedTokens: FailedTokens;
}

/**
 * Finds the client's address, and shows on every answer what is left of the caller's limit: its key's, or, before the key
 * is known, that of wrong tokens from its address.
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
