import { describe, expect, it } from "vitest";
import { createMachineMetrics } from "../../src/metrics/machine-metrics.ts";
import { createMetrics } from "../../src/metrics.ts";
import { combineHealth } from "../../src/supervisor/collect.ts";
import { createLineWriter } from "../../src/supervisor/log-lines.ts";

describe("the health of a machine", () => {
  const ok = { status: "ready", checks: { redis: { ok: true, facts: { shards: 3 } } } } as const;
  const failed = {
    status: "notReady",
    checks: { redis: { ok: false, reason: "is full", facts: {} } },
  } as const;

  it("is ready if all processes are, and sums up their shards", () => {
    expect(combineHealth([ok, ok], { processes: 2, recentlyEnded: 1 })).toEqual({
      status: "ready",
      checks: {
        redis: { ok: true, facts: { shards: 6 } },
        processes: { ok: true, warnings: [], facts: { processes: 2, ready: 2, recentlyEnded: 1 } },
      },
    });
  });

  it.each([
    { reports: [ok, failed], status: "notReady" },
    { reports: [ok], status: "degraded" },
    { reports: [ok, undefined], status: "degraded" },
    { reports: [undefined, undefined], status: "notReady" },
    { reports: [], status: "notReady" },
  ])("has the worst status of the processes: $status", ({ reports, status }) => {
    expect(combineHealth(reports, { processes: 2, recentlyEnded: 0 }).status).toBe(status);
  });
});

it("the metrics of a machine keep the counts of ended processes, and export gauges of the machine once", async () => {
  const createProcess = (used: number) => {
    const metrics = createMetrics();
    metrics.deliveries.add("webhook", "accepted", used);
    metrics.publishSeconds.observe(0.003);
    metrics.pollLagSeconds.observe(2);
    metrics.observe("inlet_used", "Part in use", () => used / 100);
    metrics.observe("inlet_held", "Held by this process", () => used, "sum");
    return metrics.registry.getMetricsAsJSON();
  };
  const machine = createMachineMetrics();
  machine.update(1, 1, await createProcess(5));
  machine.update(2, 2, await createProcess(7));
  machine.end(1);
  machine.update(3, 1, await createProcess(11));
  machine.end(4);
  const lines = (await machine.render("prometheus")).split("\n");
  expect(lines).toEqual(
    expect.arrayContaining([
      'inlet_deliveries_total{kind="webhook",result="accepted",process="1"} 16',
      'inlet_deliveries_total{kind="webhook",result="accepted",process="2"} 7',
      'inlet_publish_duration_seconds_bucket{le="0.0025",process="1"} 0',
      'inlet_publish_duration_seconds_bucket{le="0.005",process="1"} 2',
      'inlet_publish_duration_seconds_count{process="1"} 2',
      'inlet_poll_lag_seconds_sum{process="1"} 4',
      'inlet_held{process="1"} 11',
      'inlet_held{process="2"} 7',
      "inlet_used 0.11",
    ]),
  );
  expect(lines.filter((line) => line.startsWith("inlet_used"))).toHaveLength(1);
});

it("the metrics of a machine have the exemplars of its running processes in the format OpenMetrics", async () => {
  const createProcess = (traceId: string | undefined) => {
    const metrics = createMetrics();
    metrics.hookSeconds.observe(0.003, "ok", traceId);
    return metrics.registry.getMetricsAsJSON();
  };
  const machine = createMachineMetrics();
  machine.update(1, 1, await createProcess("a".repeat(32)));
  machine.update(2, 2, await createProcess("b".repeat(32)));
  machine.update(3, 3, await createProcess(undefined));
  machine.end(2);
  const text = await machine.render("openMetrics");
  const exemplars = text.split("\n").filter((line) => line.includes(" # "));
  expect(exemplars).toEqual([
    expect.stringMatching(
      /^inlet_hook_duration_seconds_bucket\{outcome="ok",le="0.005",process="1"\} 1 # \{trace_id="a{32}"\} 0.003 [\d.]+$/,
    ),
  ]);
  expect(text.endsWith("\n# EOF\n")).toBe(true);
});

it("a line writer writes only whole lines, in their order", () => {
  const written: string[] = [];
  const write = createLineWriter((lines) => written.push(lines));
  for (const chunk of ["a", "b\nc\nd", "e", "\n"]) write(chunk);
  expect(written).toEqual(["ab\nc\n", "de\n"]);
});
