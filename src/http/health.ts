import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono } from "hono";
import { isOneOf } from "../lib/same-text.ts";
import type { Metrics } from "../metrics.ts";
import { bearerToken } from "./callers/authenticate.ts";
import type { RequestEnv } from "./context.ts";
import { ApiError } from "./problem.ts";

/** The result of one check. `facts` are shown beside it (which durability holds); a reason is for everybody to read. */
export type CheckResult =
  | { readonly ok: true; readonly facts?: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string; readonly facts?: Readonly<Record<string, unknown>> };

/** Something without which the gateway cannot publish. */
export interface HealthCheck {
  readonly name: string;
  readonly check: (options: { readonly signal: AbortSignal }) => CheckResult | Promise<CheckResult>;
}

export interface HealthDeps {
  readonly checks: readonly HealthCheck[];
  readonly metrics: Metrics;
  readonly metricsToken: string | undefined;
  readonly checkTimeoutMs?: number;
}

export type HealthEnv = RequestEnv & { Bindings: HttpBindings };

const CHECK_TIMEOUT_MS = 2_000;

/** `/healthz`: alive. `/readyz`: can publish, or what is wrong. `/metrics`: for this machine, or with the token. */
export function createHealth(deps: HealthDeps): Hono<HealthEnv> {
  const health = new Hono<HealthEnv>();

  health.get("/healthz", (c) => c.json({ status: "ok" }));

  health.get("/readyz", async (c) => {
    const results = await Promise.all(deps.checks.map((one) => runCheck(one, deps.checkTimeoutMs)));
    const ready = results.every(([, { ok }]) => ok);
    const body = { status: ready ? "ready" : "notReady", checks: Object.fromEntries(results) };
    return c.json(body, ready ? 200 : 503);
  });

  health.get("/metrics", async (c) => {
    if (!mayReadMetrics(c, deps.metricsToken)) {
      throw new ApiError("unauthenticated", "Metrics are for this machine, or with the metrics token.", {
        headers: { "www-authenticate": "Bearer" },
      });
    }
    const { registry } = deps.metrics;
    return c.text(await registry.metrics(), 200, { "content-type": registry.contentType });
  });

  return health;
}

async function runCheck(
  { name, check }: HealthCheck,
  timeoutMs = CHECK_TIMEOUT_MS,
): Promise<readonly [string, CheckResult]> {
  const signal = AbortSignal.timeout(timeoutMs);
  const tooLate = new Promise<CheckResult>((resolve) => {
    signal.addEventListener("abort", () => resolve({ ok: false, reason: "gives no answer" }), { once: true });
  });
  const checked = async (): Promise<CheckResult> => check({ signal });
  const failed: CheckResult = { ok: false, reason: "fails" };
  return [name, await Promise.race([checked().catch(() => failed), tooLate])];
}

/** By which proxies tell of whom they forward: the standard's, the common ones, those of some networks. */
const FORWARDING_HEADER =
  /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/;

/** A proxy on this machine also comes from the loopback: what it forwards is not from here. */
function mayReadMetrics(c: Context<HealthEnv>, metricsToken: string | undefined): boolean {
  const token = bearerToken(c.req.header("authorization"));
  if (metricsToken !== undefined && token !== undefined && isOneOf(token, [metricsToken])) return true;
  if (Object.keys(c.req.header()).some((name) => FORWARDING_HEADER.test(name))) return false;
  return isLoopback(c.env?.incoming?.socket.remoteAddress ?? "");
}

const isLoopback = (address: string): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address);
