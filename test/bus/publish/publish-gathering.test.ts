import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../support.ts";

const server = opened(startRedis);

// Prevents write timeouts while Redis is stopped.
beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

it.each([
  [
    "publishing collects the deliveries that arrive while a Redis call is in flight, and sends them in one next call",
    [1, 7, 8],
    2,
  ],
  [
    "publishing sends a second Redis call before the first returns if many deliveries are waiting",
    [1, 16, 7, 8],
    3,
  ],
])("%s", async (_, arrivals, expected) => {
  await using redis = await openTestRedis(server.url);
  let calls = 0;
  const publish = testPublish(redis, { onCall: () => void calls++ });
  const channel = testChannel();
  const published: Promise<unknown>[] = [];
  server.signal("SIGSTOP");
  for (const deliveries of arrivals) {
    for (let n = 0; n < deliveries; n++)
      published.push(publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now));
    await turn();
    await turn();
  }
  server.signal("SIGCONT");
  await Promise.all(published);
  expect(calls).toBe(expected);
});
