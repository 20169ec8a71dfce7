import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { accepts } from "hono/accepts";
import type { Clock } from "../lib/clock.ts";
import { isSecretIn } from "../lib/constant-time.ts";
import type { MetricsFormat } from "../metrics/open-metrics.ts";
import { METRICS_CONTENT_TYPES, type Metrics } from "../metrics.ts";
import { bearerToken } from "./callers/authenticate.ts";
import type { Fetch, RequestEnv } from "./context.ts";
import { ApiError, answerErrors } from "./errors.ts";
import { requestId } from "./request.ts";

/** Result of a health check. `reason`, `warnings` and `facts` are visible to everyone. */
export type CheckResult =
  | {
      readonly ok: true;
      /** Problems that need attention although the gateway can publish events. */
      readonly warnings?: readonly string[];
      readonly facts?: Readonly<Record<string, unknown>>;
    }
  | { readonly ok: false; readonly reason: string; readonly facts?: Readonly<Record<string, unknown>> };

export interface HealthCheck {
  readonly name: string;
  readonly check: (options: { readonly signal: AbortSignal }) => CheckResult | Promise<CheckResult>;
}

/** Body of the response to `/readyz`. */
export interface HealthReport {
  readonly status: "ready" | "degraded" | "notReady";
  readonly checks: Readonly<Record<string, CheckResult>>;
}

export interface HealthDeps {
  readonly checks: readonly HealthCheck[];
  readonly metrics: Metrics;
  readonly metricsToken: string | undefined;
  readonly checkTimeoutMs?: number;
  /** Reads the health and the metrics of all processes. `undefined` if there is only this process. */
  readonly machine?: MachineHealth | undefined;
}

interface MachineHealth {
  readonly health: () => Promise<HealthReport>;
  readonly metrics: (format: MetricsFormat) => Promise<string>;
}

export type HealthEnv = RequestEnv & { Bindings: HttpBindings };

const CHECK_TIMEOUT_MS = 2_000;

/** Serves `/healthz` (whether the process runs), `/readyz` (whether it can publish events) and `/metrics`, which requires a token. */
export function createHealth(deps: HealthDeps): Hono<HealthEnv> {
  const health = new Hono<HealthEnv>();

  health.get("/healthz", (c) => c.json({ status: "ok" }));

  health.get("/readyz", async (c) => {
    const report = await (deps.machine?.health() ?? readHealth(deps.checks, deps.checkTimeoutMs));
    return c.json(report, report.status === "notReady" ? 503 : 200);
  });

  const { metricsToken } = deps;
  health.get("/metrics", (c) => {
    if (metricsToken === undefined)
      throw new ApiError(
        "not_found",
        "Metrics are disabled on this port. Set INLET_METRICS_TOKEN or INLET_METRICS_LISTEN.",
      );
    const token = bearerToken(c.req.header("authorization"));
    if (token === undefined || !isSecretIn(token, [metricsToken])) {
      throw new ApiError(
        "unauthenticated",
        "This requires the metrics token as a bearer token (INLET_METRICS_TOKEN).",
        {
          headers: { "www-authenticate": "Bearer" },
        },
      );
    }
    return answerMetrics(c, deps.machine?.metrics ?? deps.metrics.render);
  });

  return health;
}

/** Serves `/metrics` on a separate port. No token is required, because only trusted clients should reach that port. */
export function createMetricsApp({
  clock,
  metrics,
}: {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "render">;
}): Fetch {
  const app = new Hono<HealthEnv>();
  app.use(requestId(clock));
  app.get("/metrics", (c) => answerMetrics(c, metrics.render));
  answerErrors(app);
  return app.fetch;
}

/** Sends the metrics. Only scrapers that prefer OpenMetrics get that format, which has exemplars. */
async function answerMetrics(c: Context, render: Metrics["render"]): Promise<Response> {
  const type = accepts(c, {
    header: "Accept",
    supports: [OPEN_METRICS, "text/plain"],
    default: "text/plain",
  });
  const format: MetricsFormat = type === OPEN_METRICS ? "openMetrics" : "prometheus";
  return c.text(await render(format), 200, { "content-type": METRICS_CONTENT_TYPES[format], vary: "Accept" });
}

const OPEN_METRICS = "application/openmetrics-text";

/** Runs all checks. */
export const readHealth = async (checks: readonly HealthCheck[], timeoutMs?: number): Promise<HealthReport> =>
  toHealthReport(Object.fromEntries(await Promise.all(checks.map((one) => runCheck(one, timeoutMs)))));

/** Derives the status from the results of the checks. */
export function toHealthReport(checks: HealthReport["checks"]): HealthReport {
  const results = Object.values(checks);
  const isDegraded = results.some((result) => result.ok && (result.warnings?.length ?? 0) > 0);
  if (!results.every(({ ok }) => ok)) return { status: "notReady", checks };
  return { status: isDegraded ? "degraded" : "ready", checks };
}

async function runCheck(
  { name, check }: HealthCheck,
  timeoutMs = CHECK_TIMEOUT_MS,
): Promise<readonly [string, CheckResult]> {
  const signal = AbortSignal.timeout(timeoutMs);
  const tooLate = new Promise<CheckResult>((resolve) => {
    signal.addEventListener("abort", () => resolve({ ok: false, reason: "does not respond" }), {
      once: true,
    });
  });
  const checked = async (): Promise<CheckResult> => check({ signal });
  const failed: CheckResult = { ok: false, reason: "fails" };
  return [name, await Promise.race([checked().catch(() => failed), tooLate])];
}
