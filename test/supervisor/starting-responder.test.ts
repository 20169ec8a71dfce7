import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it } from "vitest";
import { createStartingResponder } from "../../src/supervisor/starting-responder.ts";

it("while no process runs, the supervisor responds with 503 and closes the connection", async () => {
  await using responder = await createStartingResponder(
    { host: "127.0.0.1", port: 0, metricsToken: undefined },
    () => "is starting its processes",
  );
  // The same options as those of the supervisor.
  const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, responder.take);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const health = await fetch(`${origin}/readyz`);
  expect([health.status, health.headers.get("connection"), await health.json()]).toEqual([
    503,
    "close",
    { status: "notReady", checks: { running: { ok: false, reason: "is starting its processes" } } },
  ]);
  const hook = await fetch(`${origin}/hooks/x`, { method: "POST", body: "{}" });
  expect([hook.status, hook.headers.get("retry-after"), await hook.json()]).toEqual([
    503,
    "1",
    expect.objectContaining({ code: "unavailable" }),
  ]);
  server.close();
});
