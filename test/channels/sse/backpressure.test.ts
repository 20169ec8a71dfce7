import { once } from "node:events";
import { afterAll, expect, it } from "vitest";
import { until } from "../../support/until.ts";
import {
  ACCEPTED,
  createRun,
  createStreamClient,
  type Script,
  startRawServer,
  streamOf,
  writeHead,
} from "./support.ts";

const client = createStreamClient();
afterAll(() => client[Symbol.asyncDispose]());

const MIB = 1024 * 1024;
const FRAME = `data: "${"x".repeat(1014)}"\n\n`;
const FRAMES = 32 * 1024;

it("the SSE client stops reading from its socket while writes to Redis are blocked", async () => {
  const flood: Script = async ({ socket }) => {
    writeHead(socket);
    for (let sent = 0; sent < FRAMES && !socket.destroyed; sent += 64) {
      if (!socket.write(FRAME.repeat(64))) await once(socket, "drain").catch(() => {});
    }
    socket.end();
  };
  await using server = await startRawServer(flood);
  const stalled = Promise.withResolvers<void>();
  let taken = 0;
  const run = createRun(
    { url: server.url },
    {
      async ingest() {
        taken += 1;
        await stalled.promise;
        return ACCEPTED;
      },
    },
  );
  // Otherwise the collected deliveries would count as memory of the stream.
  run.deliveries.push = () => 0;
  run.taken.push = () => 0;
  const heapBefore = process.memoryUsage().arrayBuffers;
  const running = client.run(run);

  let written = -1;
  await until(
    () => {
      const before = written;
      written = server.calls[0]?.socket.bytesWritten ?? 0;
      return taken > 0 && written === before;
    },
    { everyMs: 100 },
  );
  // The two kernel buffers of the loopback connection may hold a few MiB.
  expect(written).toBeLessThan(24 * MIB);
  expect(taken).toBeLessThan(600);
  expect(process.memoryUsage().arrayBuffers - heapBefore).toBeLessThan(16 * MIB);
  stalled.resolve();
  expect(await running).toEqual({ kind: "done" });
  expect(taken).toBe(FRAMES);
});

it("the SSE client accepts 20,000 events that arrive at once in order, with fewer than 2,000 in flight", async () => {
  const total = 20_000;
  const text = Array.from({ length: total }, (_, n) => `id: ${n}\ndata: ${n}\n\n`).join("");
  await using server = await startRawServer(streamOf(text));
  let next = 0;
  let inFlight = 0;
  let maxInFlight = 0;
  const run = createRun(
    { url: server.url },
    {
      async ingest({ body }) {
        if (Number(body.toString()) === next) next += 1;
        maxInFlight = Math.max(maxInFlight, ++inFlight);
        await new Promise((resolve) => setImmediate(resolve));
        inFlight -= 1;
        return ACCEPTED;
      },
    },
  );
  run.deliveries.push = () => 0;
  run.taken.push = () => 0;
  expect(await client.run(run)).toEqual({ kind: "done" });
  expect(next).toBe(total);
  expect(maxInFlight).toBeLessThan(2_000);
});
