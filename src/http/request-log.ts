import type { Context, MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import type { Clock } from "../lib/clock.ts";
import { isId } from "../lib/ids.ts";
import type { Log } from "../log.ts";
import type { ApiEnv } from "./context.ts";
import { toApiError } from "./problem.ts";

/**
 * One wide line for each request of the management API that went wrong or was made to change something. It names the route,
 * not the path: an address of a channel is a credential. What an internal error was stands here and nowhere else.
 */
export function requestLog(deps: { readonly log: Log; readonly clock: Clock }): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = deps.clock();
    await next();
    const { method } = c.req;
    const { status } = c.res;
    if (status < 400 && (method === "GET" || method === "HEAD")) return;
    const line = { ...describe(c), status, durationMs: deps.clock() - startedAtMs };
    if (status < 500) deps.log.info(line, "request");
    else deps.log[status === 503 ? "warn" : "error"]({ ...line, err: causeOf(c.error) }, "request failed");
  };
}

function describe(c: Context<ApiEnv>): Readonly<Record<string, unknown>> {
  const { client, caller }: Partial<ApiEnv["Variables"]> = c.var;
  return {
    requestId: c.get("requestId"),
    method: c.req.method,
    route: routePath(c, -1),
    appId: appIdOf(c),
    organizationId: caller?.organizationId,
    accountId: caller?.accountId,
    keyId: caller?.keyId ?? undefined,
    confinedTo: caller?.confinedTo?.id,
    clientAddress: client?.address,
  };
}

/** What stands in its place may be anything, an address included. */
function appIdOf(c: Context<ApiEnv>): string | undefined {
  const appId = c.req.param("appId");
  return appId !== undefined && isId("app", appId) ? appId : undefined;
}

function causeOf(error: Error | undefined): unknown {
  if (error === undefined) return undefined;
  return toApiError(error).cause ?? error;
}
