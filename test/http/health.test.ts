import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { afterEach, describe, expect, it } from "vitest";
import { startListener } from "../../src/gateway/listener.ts";
import { answerErrors } from "../../src/http/errors.ts";
import { createHealth, createMetricsApp, type HealthCheck, type HealthEnv } from "../../src/http/health.ts";
import { requestId } from "../../src/http/request.ts";
import { createMetrics } from "../../src/metrics.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function start(options: { checks?: readonly HealthCheck[]; metricsToken?: string } = {}) {
  const { checks = [], metricsToken } = options;
  const metrics = createMetrics({ includeProcessMetrics: true });
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
  it("report a healthy gateway as alive and ready, with details of each check", async () => {
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

  it("report a gateway with a warning as degraded, with status 200", async () => {
    const { get } = await start({
      checks: [
        { name: "bus", check: () => ({ ok: true, warnings: [] }) },
        { name: "database", check: () => ({ ok: true, warnings: ["The disk is full."] }) },
      ],
    });
    const answer = await get("/readyz");
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { status: "degraded", checks: { database: { ok: true, warnings: ["The disk is full."] } } },
    ]);
  });

  it("report each check that fails, throws or does not respond", async () => {
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
          feed: { ok: false, reason: "does not respond" },
        },
      },
    ]);
    expect((await get("/healthz")).status).toBe(200);
  });
});

describe("/metrics", () => {
  it("requires the metrics token, even from the same machine", async () => {
    const { get, metrics } = await start({ metricsToken: "t0ken" });
    metrics.events.add("webhook", "published", 3);
    metrics.observe("inlet_test_figure", "read when asked", () => 42);
    const answer = await get("/metrics", { authorization: "Bearer t0ken" });
    const text = await answer.text();
    expect(text).toContain('inlet_events_total{kind="webhook",status="published"} 3');
    expect(text).toContain("inlet_test_figure 42");
    expect(text).toContain("process_cpu_seconds_total");
    const refused = [await get("/metrics"), await get("/metrics", { authorization: "Bearer other" })];
    expect(refused.map(({ status }) => status)).toEqual([401, 401]);
  });

  it("responds with 404 and instructions if no metrics token is configured", async () => {
    const { get } = await start();
    const answer = await get("/metrics", { authorization: "Bearer any" });
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining("INLET_METRICS_LISTEN") });
  });

  it("requires no token on the separate metrics listener, which serves no other path", async () => {
    const app = createMetricsApp({
      clock: Date.now,
      metrics: createMetrics({ includeProcessMetrics: true }),
    });
    const listener = await startListener({ host: "127.0.0.1", port: 0 }, app);
    closing.push(async () => listener[Symbol.asyncDispose]());
    const at = `http://127.0.0.1:${listener.port}`;
    expect(await (await fetch(`${at}/metrics`)).text()).toContain("process_cpu_seconds_total");
    for (const path of ["/healthz", "/v1/apps", "/hooks/x"])
      expect((await fetch(at + path)).status).toBe(404);
  });
});
