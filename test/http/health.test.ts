import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { createHealth, type HealthCheck, type HealthEnv } from "../../src/http/health.ts";
import { answerErrors } from "../../src/http/problem.ts";
import { requestId } from "../../src/http/request.ts";
import { createMetrics } from "../../src/metrics.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(options: { checks?: readonly HealthCheck[]; metricsToken?: string } = {}) {
  const { checks = [], metricsToken } = options;
  const metrics = createMetrics({ ofProcess: true });
  const app = new Hono<HealthEnv>();
  app.use(requestId(Date.now));
  app.route("/", createHealth({ checks, metrics, metricsToken, checkTimeoutMs: 50 }));
  answerErrors(app);
  const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  closing.push(() => new Promise((resolve) => void server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers });
  return { get, metrics, app };
}

describe("/healthz and /readyz", () => {
  it("answer that the gateway is alive and ready, with the facts of each check", async () => {
    const { get } = await start({
      checks: [{ name: "bus", check: () => ({ ok: true, facts: { durability: "fsync" } }) }],
    });
    expect(await (await get("/healthz")).json()).toEqual({ status: "ok" });
    const ready = await get("/readyz");
    expect([ready.status, await ready.json()]).toEqual([
      200,
      { status: "ready", checks: { bus: { ok: true, facts: { durability: "fsync" } } } },
    ]);
  });

  it("name each check that is not ok, that fails or that hangs", async () => {
    const { get } = await start({
      checks: [
        { name: "fine", check: () => ({ ok: true }) },
        { name: "bus", check: () => ({ ok: false, reason: "Redis is loading" }) },
        { name: "database", check: () => Promise.reject(new Error("password is s3cret")) },
        { name: "feed", check: () => new Promise(() => {}) },
      ],
    });
    const answer = await get("/readyz");
    expect([answer.status, await answer.json()]).toEqual([
      503,
      {
        status: "notReady",
        checks: {
          fine: { ok: true },
          bus: { ok: false, reason: "Redis is loading" },
          database: { ok: false, reason: "fails" },
          feed: { ok: false, reason: "gives no answer" },
        },
      },
    ]);
    expect((await get("/healthz")).status).toBe(200);
  });
});

describe("/metrics", () => {
  it("are answered to callers on this machine", async () => {
    const { get, metrics } = await start();
    metrics.events.add("webhook", "published", 3);
    metrics.observe("inlet_test_figure", "read when asked", () => 42);
    const text = await (await get("/metrics")).text();
    expect(text).toContain('inlet_events_total{kind="webhook",status="published"} 3');
    expect(text).toContain("inlet_test_figure 42");
    expect(text).toContain("process_cpu_seconds_total");
  });

  it("are refused to other machines and to requests that a proxy forwards", async () => {
    const { get, app } = await start();
    for (const name of ["X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "Via"]) {
      const answer = await get("/metrics", { [name]: "1" });
      expect([answer.status, await answer.json()]).toMatchObject([401, { code: "unauthenticated" }]);
    }
    const remote = (remoteAddress: string | undefined) =>
      app.request("/metrics", {}, { incoming: { socket: { remoteAddress } } });
    for (const address of ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1", undefined]) {
      expect((await remote(address)).status).toBe(401);
    }
    for (const address of ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"]) {
      expect((await remote(address)).status).toBe(200);
    }
  });

  it("are answered to any caller with the token", async () => {
    const { get } = await start({ metricsToken: "t0ken" });
    const status = async (token: string) =>
      (await get("/metrics", { "x-forwarded-for": "192.0.2.1", authorization: `Bearer ${token}` })).status;
    expect([await status("t0ken"), await status("other"), await status("")]).toEqual([200, 401, 401]);
  });
});
