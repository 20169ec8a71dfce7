import { expect, it } from "vitest";
import { connect } from "../../src/consumer/connection.ts";
import { runEngine } from "../../src/consumer/engine.ts";
import { readOptions } from "../../src/consumer/options.ts";
import { opened } from "../support/opened.ts";
import { makeSubscription, startTestRedis } from "./support.ts";

const server = opened(startTestRedis);

it("a reader that is behind asks for many entries at a time, however soon each is handled", async () => {
  const subscription = await makeSubscription(server);
  const [topic = ""] = subscription.topics;
  const count = 2_000;
  await subscription.send(topic, 0, count);
  const connection = await connect(server.url, () => {});
  const asked: number[] = [];
  const stop = new AbortController();
  let handled = 0;
  try {
    await runEngine({
      settings: readOptions({ redis: server.url, subscription: subscription.id, concurrency: 64 }),
      connection: {
        isCluster: connection.isCluster,
        call(command, args) {
          if (command === "xreadgroup") asked.push(Number(args[args.indexOf("COUNT") + 1]));
          return connection.call(command, args);
        },
      },
      handler() {
        if (++handled === count) stop.abort();
      },
      signal: stop.signal,
    });
  } finally {
    connection.close();
  }
  expect(handled).toBe(count);
  expect(Math.min(...asked)).toBeGreaterThanOrEqual(128);
  expect(await subscription.pending()).toBe(0);
});
