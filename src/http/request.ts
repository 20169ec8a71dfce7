import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes, routePath } from "hono/route";
import type { RefusalCounts } from "../data/accounts/refusals.ts";
import type { Clock } from "../lib/clock.ts";
import { createId, isId } from "../lib/ids.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { ApiEnv, RequestEnv } from "./context.ts";
import { invalidParameters, toApiError } from "./problem.ts";

const VALID_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/;

/** The id of a request: the client's `X-Request-Id` where that is sane, else a new id. */
export const resolveRequestId = (given: string | undefined, nowMs: number): string =>
  given !== undefined && VALID_REQUEST_ID.test(given) ? given : createId("req", nowMs);

/** Gives each request its id; every answer carries it. */
export function requestId(clock: Clock): MiddlewareHandler<RequestEnv> {
  return async (c, next) => {
    const id = resolveRequestId(c.req.header("x-request-id"), clock());
    c.set("requestId", id);
    await next();
    // After the fact: a header set before it is lost when a route answers with a Response of its own.
    c.header("X-Request-Id", id);
    c.header("X-Content-Type-Options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.header("Cache-Control", "no-store");
  };
}

/** Refuses a request that two servers could take for different hosts. */
export const oneHost: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (c, next) => {
  if (c.env?.incoming) requireOneHost(c.env.incoming);
  await next();
};

/** RFC 9112, section 3.2. Node keeps the first `Host` and drops others without a word. @throws ApiError 400 */
export function requireOneHost({ rawHeaders }: IncomingMessage): void {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  if (hosts > 1) throw invalidParameters([{ path: "Host", message: "stands more than once" }]);
}

const COUNTED_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE"]);

/** The pattern of the route that answers: of those that a path fits, the first that is no middleware. */
const routeOf = (c: Context): string =>
  matchedRoutes(c).find(({ method }) => method !== "ALL")?.path ?? routePath(c, -1);

/** Counts and times the answers of the management API by the patterns of their routes, of which there are so many and no more. */
export function requestMetrics({
  apiRequests,
  apiRequestSeconds,
}: Pick<Metrics, "apiRequests" | "apiRequestSeconds">): MiddlewareHandler {
  return async (c, next) => {
    const startedAt = performance.now();
    await next();
    const method = COUNTED_METHODS.has(c.req.method) ? c.req.method : "other";
    const route = routeOf(c);
    apiRequests.inc({ method, route, status: c.res.status });
    apiRequestSeconds.observe({ method, route }, (performance.now() - startedAt) / 1000);
  };
}

/**
 * One wide line for each request of the management API that went wrong or was made to change something. It names the route,
 * not the path: an address of a channel is a credential. The cause of an internal error stands here and nowhere else.
 */
export function requestLog(deps: { readonly log: Log; readonly clock: Clock }): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = deps.clock();
    await next();
    const { method } = c.req;
    const { status } = c.res;
    if (status < 400 && (method === "GET" || method === "HEAD")) return;
    const line = { ...describe(c), status, durationMs: deps.clock() - startedAtMs };
    if (status < 500) deps.log.info({ event: "http.request", ...line }, "request");
    else
      deps.log[status === 503 ? "warn" : "error"](
        { event: "http.request_failed", ...line, err: causeOf(c.error) },
        "request failed",
      );
  };
}

/** Counts requests that are refused, by caller and address, or by network where nobody is known; that one has no organization. */
export function countRejections(refusals: Pick<RefusalCounts, "note">): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    await next();
    const { status } = c.res;
    if (status !== 401 && status !== 403) return;
    const { client, caller }: Partial<ApiEnv["Variables"]> = c.var;
    const { organizationId = "", accountId = "", keyId } = caller ?? {};
    const address = (accountId === "" ? client?.network : client?.address) ?? "";
    refusals.note({ organizationId, accountId, keyId: keyId ?? "", address, status });
  };
}

function describe(c: Context<ApiEnv>): Readonly<Record<string, unknown>> {
  const { client, caller }: Partial<ApiEnv["Variables"]> = c.var;
  return {
    requestId: c.get("requestId"),
    method: c.req.method,
    route: routeOf(c),
    appId: appIdOf(c),
    organizationId: caller?.organizationId,
    accountId: caller?.accountId,
    keyId: caller?.keyId ?? undefined,
    confinedTo: caller?.confinedTo?.id,
    clientAddress: client?.address,
  };
}

/** In a wrong path the parameter may be anything, an address included. */
function appIdOf(c: Context<ApiEnv>): string | undefined {
  const appId = c.req.param("appId");
  return appId !== undefined && isId("app", appId) ? appId : undefined;
}

function causeOf(error: Error | undefined): unknown {
  if (error === undefined) return undefined;
  return toApiError(error).cause ?? error;
}
