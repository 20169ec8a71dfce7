import { expect, it } from "vitest";
import { observeBody } from "../../src/mcp/observed-body.ts";
import { until } from "../support/until.ts";

it("is drained only while its reader waits for data", async () => {
  const chunks = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 10 });
  const { body, isDrained } = observeBody(chunks.readable);
  const writer = chunks.writable.getWriter();
  expect(isDrained()).toBe(false);
  const reader = body.getReader();
  const first = reader.read();
  await until(async () => isDrained());
  for (const byte of [1, 2]) void writer.write(Uint8Array.of(byte));
  expect((await first).value).toEqual(Uint8Array.of(1));
  // The reader has not asked for the second chunk yet.
  expect(isDrained()).toBe(false);
  expect((await reader.read()).value).toEqual(Uint8Array.of(2));
  const last = reader.read();
  await until(async () => isDrained());
  await writer.close();
  expect((await last).done).toBe(true);
});

it("cancels its source when the client disconnects", async () => {
  let reason: unknown;
  const source = new ReadableStream<Uint8Array>({
    cancel(given) {
      reason = given;
    },
  });
  await observeBody(source).body.cancel("gone");
  expect(reason).toBe("gone");
});
