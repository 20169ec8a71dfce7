import { isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import { matchedRoutes, routePath } from "hono/route";
import type { RejectionCounts } from "../data/accounts/rejections.ts";
import { ValueCollector, type Values } from "../event/values.ts";
import type { Clock } from "../lib/clock.ts";
import { createId, isId } from "../lib/ids.ts";
import { createRepeatedLines } from "../lib/repeated-lines.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { ApiEnv, RequestEnv } from "./context.ts";
import { invalidParameters, toApiError } from "./errors.ts";

const VALID_REQUEST_ID = /^[A-Za-z0-9_.:-]{1,128}$/;

/** Returns the client's `X-Request-Id` if it is well-formed, otherwise a new id. */
export const resolveRequestId = (given: string | undefined, nowMs: number): string =>
  given !== undefined && VALID_REQUEST_ID.test(given) ? given : createId("req", nowMs);

/** Creates middleware that assigns an id to each request and returns it in `X-Request-Id`. */
export function requestId(clock: Clock): MiddlewareHandler<RequestEnv> {
  return async (c, next) => {
    const id = resolveRequestId(c.req.header("x-request-id"), clock());
    c.set("requestId", id);
    await next();
    // Hono drops headers that were set before a route returned its own `Response`, so this header is set afterwards.
    c.header("X-Request-Id", id);
    c.header("X-Content-Type-Options", "nosniff");
    if (!c.res.headers.has("cache-control")) c.header("Cache-Control", "no-store");
  };
}

/** Rejects requests with several `Host` headers, because a proxy and this gateway could choose different hosts. */
export const oneHost: MiddlewareHandler<{ Bindings: Partial<HttpBindings> }> = async (c, next) => {
  if (c.env?.incoming) requireOneHost(collectHeaderValues(c.env.incoming));
  await next();
};

/**
 * Rejects a request with several `Host` headers (RFC 9112, section 3.2).
 *
 * @param values all values of all headers, because Node drops all `Host` headers but the first
 * @throws ApiError 400
 */
export function requireOneHost(values: Values): void {
  if (Array.isArray(values.host))
    throw invalidParameters([{ path: "Host", message: "must not appear more than once" }]);
}

const COUNTED_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE"]);

/** Returns the path pattern of the route that handles the request. Middleware is ignored. */
const routeOf = (c: Context): string =>
  matchedRoutes(c).find(({ method }) => method !== "ALL")?.path ?? routePath(c, -1);

/** Creates middleware that measures API responses by route pattern. Measuring by path would create an unlimited number of time series. */
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
 * Creates middleware that logs failed and changing API requests. It logs the route pattern, because the path may contain a secret channel
 * address.
 */
export function requestLog(deps: { readonly log: Log; readonly clock: Clock }): MiddlewareHandler<ApiEnv> {
  const noteUnavailable = createRepeatedLines();
  return async (c, next) => {
    const startedAtMs = deps.clock();
    await next();
    const { method } = c.req;
    const { status } = c.res;
    if (status < 400 && (method === "GET" || method === "HEAD")) return;
    const facts = { ...describe(c), status, durationMs: deps.clock() - startedAtMs };
    if (status < 500) return deps.log.info({ event: "http.request", ...facts }, "request");
    const err = causeOf(c.error);
    const line = { event: "http.request_failed", ...facts, err, count: 1 };
    if (status !== 503) return deps.log.error(line, "request failed");
    noteUnavailable(String(err), (count) => {
      line.count = count;
      deps.log.warn(line, "request failed");
    });
  };
}

/** Creates middleware that counts rejected requests per caller. Unknown callers are counted by their network. */
export function countRejections(refusals: Pick<RejectionCounts, "note">): MiddlewareHandler<ApiEnv> {
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

/** Returns the app id in the path if it is valid. An invalid one is not logged, because it may be a secret channel address. */
function appIdOf(c: Context<ApiEnv>): string | undefined {
  const appId = c.req.param("appId");
  return appId !== undefined && isId("app", appId) ? appId : undefined;
}

function causeOf(error: Error | undefined): unknown {
  if (error === undefined) return undefined;
  return toApiError(error).cause ?? error;
}

/** Returns all header values. Uses the raw headers if a name repeats, because Node joins or drops repeated headers. */
export function collectHeaderValues({
  headers,
  rawHeaders,
}: Pick<IncomingMessage, "headers" | "rawHeaders">): Values {
  const names = Object.keys(headers);
  if (names.length * 2 !== rawHeaders.length) return collectRawHeaders(rawHeaders);
  const { collected } = new ValueCollector();
  for (const name of names) {
    const value = headers[name];
    // Node returns a list for some headers, even if they occur only once.
    if (typeof value !== "string") return collectRawHeaders(rawHeaders);
    collected[name] = decodeHeader(value);
  }
  return collected;
}

/** Decodes a header value as UTF-8, if it is valid UTF-8. Node decodes all headers as Latin-1. */
function decodeHeader(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : value;
}

function collectRawHeaders(rawHeaders: readonly string[]): Values {
  const values = new ValueCollector();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    values.add((rawHeaders[i] ?? "").toLowerCase(), decodeHeader(rawHeaders[i + 1] ?? ""));
  }
  return values.collected;
}
