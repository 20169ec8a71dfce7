import { createServer } from "node:net";
import { expect, it } from "vitest";
import { startOtlpExporter } from "../../src/tracing/otlp-exporter.ts";
import type { FinishedSpan } from "../../src/tracing/span.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { createTestLog } from "../support/test-log.ts";

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

function start(endpoint: string) {
  const counts = { exported: 0, failed: 0, dropped: 0 };
  const exporter = startOtlpExporter(
    { endpoint, headers: {}, serviceName: "test", resourceAttributes: {} },
    {
      log: createTestLog("info").log,
      onExported(result, count) {
        counts[result] += count;
      },
    },
  );
  return { exporter, counts };
}

it("exports the waiting spans when it stops, and drops those that do not fit into its queue", async () => {
  const { exporter, counts } = start(receiver.origin);
  for (let i = 0; i < 3_000; i++) exporter.record(span);
  expect(counts).toEqual({ exported: 0, failed: 0, dropped: 952 });
  await exporter[Symbol.asyncDispose]();
  expect(counts).toEqual({ exported: 2_048, failed: 0, dropped: 952 });
  expect(receiver.spans).toHaveLength(2_048);
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
