import { Session } from "node:inspector/promises";
import { expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { startTestGateway } from "../support/gateway.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { startOtlpReceiver } from "../support/otlp-receiver.ts";
import { until } from "../support/until.ts";

const gateway = givenGateway({ INLET_ROLES: "hooks,api" });
const withoutFastPath = givenGateway(
  { INLET_ROLES: "hooks", INLET_HTTP_FAST_PATH: "off" },
  { stores: gateway.stores },
);
const receiver = opened(startOtlpReceiver);

/** Returns the names of the tracing functions that run during `work`. */
async function findTracing(work: () => Promise<unknown>): Promise<readonly string[]> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result
      .filter(({ url }) => /\/src\/(tracing\/|ingest\/delivery-spans)|@opentelemetry/.test(url))
      .flatMap(({ functions }) => functions)
      .filter(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0)
      .map(({ functionName }) => functionName);
  } finally {
    session.disconnect();
  }
}

it("a delivery executes no code of traces unless a receiver of spans is set", async () => {
  const events = [{ type: "e", idPath: "$.id" }];
  const app = await installApp(gateway, [{ uid: "main", kind: "webhook", config: {}, events }]);
  let sent = 0;
  async function send(origin: string): Promise<void> {
    const response = await fetch(`${origin}/hooks/${app.channels[0]?.id}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: String(sent++) }),
    });
    expect(await response.json()).toMatchObject({ published: 1 });
  }
  // Gateways of earlier tests run in the same process, and may still export their last spans.
  for (const { origin } of [gateway, withoutFastPath])
    await until(async () => (await findTracing(() => send(origin))).length === 0);
  const settings = { ...gateway.stores.env, OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin };
  await using traced = await startTestGateway(settings);
  expect(await findTracing(() => send(traced.origin))).toEqual(
    expect.arrayContaining(["startReceive", "endReceive"]),
  );
});
