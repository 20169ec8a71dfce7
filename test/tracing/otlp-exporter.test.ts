import { createServer } from "node:net";
import { expect, it } from "vitest";
import { startOtlpExporter } from "../../src/tracing/otlp-exporter.ts";
import type { FinishedSpan } from "../../src/tracing/span.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { createTestLog } from "../support/test-log.ts";
import { until } from "../support/until.ts";

const receiver = opened(startOtlpReceiver);

const span: FinishedSpan = {
  name: "s",
  kind: "internal",
  traceId: "4bf92f3577b34da6a3ce929d0e0e4736",
  spanId: "00f067aa0ba902b7",
  parentSpanId: undefined,
  links: [],
  startMs: 1,
  endMs: 2.5,
  attributes: { text: "t", number: 3 },
  isFailed: true,
};

function start(endpoint: string, scheduleDelayMs = 60_000) {
  const counts = { exported: 0, failed: 0, dropped: 0 };
  const exporter = startOtlpExporter(
    { endpoint, headers: {}, serviceName: "test", resourceAttributes: {}, scheduleDelayMs },
    {
      log: createTestLog("info").log,
      onExported(result, count) {
        counts[result] += count;
      },
    },
  );
  return { exporter, counts };
}

it("exports spans after the delay, or when a batch is full, in one request for many spans", async () => {
  const { exporter: delayed } = start(receiver.origin, 300);
  await using _ = delayed;
  const { exporter, counts } = start(receiver.origin);
  await using __ = exporter;
  const requests = receiver.requests.length;
  for (let i = 0; i < 512; i++) exporter.record(span);
  // These arrive during the export, and wait for the delay.
  for (let i = 0; i < 10; i++) exporter.record(span);
  await until(() => counts.exported === 512);
  expect(receiver.requests.length - requests).toBe(1);
  for (let i = 0; i < 10; i++) delayed.record(span);
  await until(() => receiver.requests.length - requests === 2);
  expect(counts.exported).toBe(512);
});

it("exports the waiting spans when it stops, and drops those that do not fit into its queue", async () => {
  const { exporter, counts } = start(receiver.origin);
  const before = receiver.spans.length;
  // The first 512 are being exported while 2,048 wait.
  for (let i = 0; i < 3_000; i++) exporter.record(span);
  expect(counts).toEqual({ exported: 0, failed: 0, dropped: 440 });
  await exporter[Symbol.asyncDispose]();
  expect(counts).toEqual({ exported: 2_560, failed: 0, dropped: 440 });
  expect(receiver.spans.length - before).toBe(2_560);
  const [first] = receiver.spans;
  expect(first).toMatchObject({ name: "s", kind: 1, status: 2, attributes: { text: "t", number: 3 } });
  expect((first?.endMs ?? 0) - (first?.startMs ?? 0)).toBeCloseTo(1.5, 2);
});

it("stops within a few seconds while its receiver hangs, or refuses connections", async () => {
  const { origin, ...closed } = await listenLocally(createServer());
  await closed[Symbol.asyncDispose]();
  receiver.respond = "hang";
  for (const endpoint of [receiver.origin, origin]) {
    const { exporter, counts } = start(endpoint);
    for (let i = 0; i < 600; i++) exporter.record(span);
    await exporter[Symbol.asyncDispose]();
    expect(counts.exported).toBe(0);
  }
});
