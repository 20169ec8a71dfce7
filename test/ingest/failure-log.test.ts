import { expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createTestExchange, createTestReceive } from "./receive-support.ts";

/** Sends 50 deliveries that fail with the same error. Returns the log lines. */
async function failAll(error: Error): Promise<readonly Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "info",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const receive = createTestReceive(() => Promise.reject(error), { log });
  for (let sent = 0; sent < 50; sent++) {
    const exchange = createTestExchange({
      headers: { "content-type": "application/json" },
      body: Buffer.from("1"),
    });
    receive("x", exchange);
    await exchange.replied;
  }
  return lines;
}

it("an outage is logged once for all deliveries of ten seconds, without stacks", async () => {
  const lines = await failAll(new UnavailableError("Redis is away", { cause: new Error("ECONNREFUSED") }));
  expect(lines).toMatchObject([
    { level: "warn", event: "hook.failed", code: "unavailable", count: 1, channel: 1 },
  ]);
  expect(lines[0]?.err).toEqual({ type: "UnavailableError", message: "Redis is away: ECONNREFUSED" });
});

it("an internal error is logged for each delivery, with its stack", async () => {
  const lines = await failAll(new TypeError("a bug"));
  expect(lines).toHaveLength(50);
  expect(lines[0]).toMatchObject({
    level: "error",
    err: { stack: expect.stringContaining("failure-log.test.ts") },
  });
});
