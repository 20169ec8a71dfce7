import { expect, it } from "vitest";
import { startRedis } from "../../support/redis.ts";
import { createTestRedis } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../support.ts";

const WRITE_TIMEOUT_MS = 1_000;

it("reads an answer that came while the event loop stood still, longer than a write may take", async () => {
  await using server = await createTestRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS });
  const channel = testChannel();
  const publish = testPublish(redis);
  const published = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  // The call has left by the next turn; then this thread sleeps until its time is over.
  await new Promise(setImmediate);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.5 * WRITE_TIMEOUT_MS);
  expect(await published).toMatchObject({ receipts: [{ status: "published" }] });
});

it("notices a silent Redis within the time of a write, also where nothing is written", async () => {
  await using server = await startRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS, checkEveryMs: 50 });
  server.signal("SIGSTOP");
  await until(() => !redis.state().ready);
  // By the deadline of writes: the socket's own, which says that it is not connected, is longer.
  expect(redis.state().problems.join()).toContain("does not answer");
  server.signal("SIGCONT");
  await until(() => redis.state().ready);
});
