import type { MiddlewareHandler } from "hono";
import type { Metrics } from "../metrics.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "DELETE"]);

/** Counts and times the answers of the management API. */
export function requestMetrics({
  apiRequests,
  apiRequestSeconds,
}: Pick<Metrics, "apiRequests" | "apiRequestSeconds">): MiddlewareHandler {
  return async (c, next) => {
    const startedAt = performance.now();
    await next();
    const method = METHODS.has(c.req.method) ? c.req.method : "other";
    apiRequests.inc({ method, status: c.res.status });
    apiRequestSeconds.observe((performance.now() - startedAt) / 1000);
  };
}
