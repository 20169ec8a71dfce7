import { expect, it } from "vitest";
import { connect } from "../../src/consumer/connection.ts";
import { runEngine } from "../../src/consumer/engine.ts";
import { readOptions } from "../../src/consumer/options.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, startTestRedis } from "./support.ts";

const server = opened(startTestRedis);

it("the consumer reads at least 128 entries per command while many entries are waiting", async () => {
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

it("the consumer continues with a topic while the acknowledgements of another topic fail", async () => {
  const subscription = await makeSubscription(server, 2);
  const [away = "", other = ""] = subscription.topics;
  const count = 600;
  await subscription.send(away, 0, 1);
  await subscription.send(other, 0, count);
  const connection = await connect(server.url, () => {});
  const stop = new AbortController();
  let [handled, isAway] = [0, true];
  try {
    await runEngine({
      settings: readOptions({ redis: server.url, subscription: subscription.id }),
      connection: {
        isCluster: connection.isCluster,
        async call(command, args) {
          if (command === "xack" && args[0] === away && isAway) throw new Error("CLUSTERDOWN");
          return connection.call(command, args);
        },
      },
      handler({ topic }) {
        if (topic !== other || ++handled < count) return;
        isAway = false;
        stop.abort();
      },
      signal: stop.signal,
    });
  } finally {
    connection.close();
  }
  expect(handled).toBe(count);
  expect(await subscription.pending()).toBe(0);
});

it("the consumer does not deliver a handled entry again while the acknowledgement of that entry is retried", async () => {
  const subscription = await makeSubscription(server);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 1);
  const connection = await connect(server.url, () => {});
  const stop = new AbortController();
  let [handled, isClaimed] = [0, false];
  let running: Promise<void> | undefined;
  try {
    running = runEngine({
      settings: readOptions({ redis: server.url, subscription: subscription.id, deadAfterMs: 1_000 }),
      connection: {
        isCluster: connection.isCluster,
        async call(command, args) {
          if (command === "xack" && !isClaimed) throw new Error("READONLY");
          const answer = await connection.call(command, args);
          if (command === "xpending") isClaimed = true;
          return answer;
        },
      },
      handler() {
        handled++;
      },
      signal: stop.signal,
    });
    await until(async () => isClaimed && (await subscription.pending()) === 0);
  } finally {
    stop.abort();
    await running;
    connection.close();
  }
  expect(handled).toBe(1);
});
