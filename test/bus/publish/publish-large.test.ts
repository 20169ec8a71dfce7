import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../support.ts";

const server = opened(startRedis);
const MANY_BYTES = 300 * 1024;

/** Proxy in front of Redis. Delays the bytes of a connection beyond `MANY_BYTES` until the test releases them. */
let proxy: Server;
let held: (() => void)[];
beforeEach(async () => {
  held = [];
  proxy = createServer((client: Socket) => {
    const upstream = dial(server.port, "127.0.0.1");
    let bytes = 0;
    client.on("data", (chunk) => {
      bytes += chunk.length;
      if (bytes <= MANY_BYTES) return void upstream.write(chunk);
      client.pause();
      held.push(() => {
        bytes = Number.NEGATIVE_INFINITY;
        upstream.write(chunk);
        client.resume();
      });
    });
    upstream.pipe(client);
    for (const side of [client, upstream]) side.on("error", () => {});
    client.on("close", () => upstream.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
});
afterEach(() => proxy.close());

it("a small delivery is published while a large delivery is still being sent to Redis", async () => {
  await using redis = await openTestRedis(`redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  const publish = testPublish(redis);
  const [large, small] = [testChannel(), testChannel()];
  const data = JSON.stringify("x".repeat(2 * MANY_BYTES));
  let isWritten = false;
  const writing = publish(
    { channel: large, events: [testEvent(large, undefined, { data })], policy: testPolicy },
    now,
  ).then(({ receipts }) => {
    isWritten = true;
    return receipts;
  });
  await until(() => held.length > 0);
  const { receipts } = await publish({ channel: small, events: [testEvent(small)], policy: testPolicy }, now);
  expect(receipts).toMatchObject([{ status: "published" }]);
  expect(isWritten).toBe(false);
  for (const release of held) release();
  expect(await writing).toMatchObject([{ status: "published" }]);
});
