import type { MiddlewareHandler } from "hono";
import type { Clock } from "../lib/clock.ts";
import { createId } from "../lib/ids.ts";
import type { RequestEnv } from "./context.ts";

const SANE = /^[A-Za-z0-9_.:-]{1,128}$/;

/** The name of a request: the client's `X-Request-Id` where that is sane, else a new id. */
export const requestIdOf = (given: string | undefined, nowMs: number): string =>
  given !== undefined && SANE.test(given) ? given : createId("req", nowMs);

/** Names each request; every answer carries the name. */
export function requestId(clock: Clock): MiddlewareHandler<RequestEnv> {
  return async (c, next) => {
    const id = requestIdOf(c.req.header("x-request-id"), clock());
    c.set("requestId", id);
    await next();
    // After the fact: a header set before it is lost when a route answers with a Response of its own.
    c.header("X-Request-Id", id);
  };
}
