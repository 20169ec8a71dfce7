import type { MiddlewareHandler } from "hono";
import type { Clock } from "../lib/clock.ts";
import { createId } from "../lib/ids.ts";
import type { RequestEnv } from "./context.ts";

const SANE = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Names each request: by the client's `X-Request-Id` where that is sane, else by a new id. Every answer carries it. */
export function requestId(clock: Clock): MiddlewareHandler<RequestEnv> {
  return async (c, next) => {
    const given = c.req.header("x-request-id");
    const id = given !== undefined && SANE.test(given) ? given : createId("req", clock());
    c.set("requestId", id);
    await next();
    // After the fact: a header set before it is lost when a route answers with a Response of its own.
    c.header("X-Request-Id", id);
  };
}
