import { describe, expect, it } from "vitest";
import { type Connection, connect } from "../../src/consumer/connection.ts";
import { runEngine } from "../../src/consumer/engine.ts";
import type { EntryHandler } from "../../src/consumer/in-flight.ts";
import { readOptions } from "../../src/consumer/options.ts";
import { moveMonotonicClock } from "../support/moved-clock.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, PATIENT_MS, startTestRedis, type TestSubscription } from "./support.ts";

const server = opened(startTestRedis);

/** Transforms, delays or drops the reply to a command before it reaches the reader. */
type Line = (command: string, answer: unknown) => unknown;

interface OrderedReader extends AsyncDisposable {
  readonly topics: () => Promise<readonly string[]>;
}

const RETRY = { initialMs: 20, maxMs: 20, factor: 1, jitter: 0 };

/** Starts an ordered reader whose replies from Redis pass through `line`. */
async function startOrderedReader(
  { id }: TestSubscription,
  handler: EntryHandler,
  line: Line = (_, answer) => answer,
): Promise<OrderedReader> {
  const connections = await Promise.all([connect(server.url, () => {}), connect(server.url, () => {})]);
  const [connection, blocking] = connections.map(
    ({ isCluster, call }): Pick<Connection, "isCluster" | "call"> => ({
      isCluster,
      call: async (command, args) => line(command, await call(command, args)),
    }),
  );
  const stopping = new AbortController();
  const settings = readOptions({
    redis: server.url,
    subscription: id,
    ordered: true,
    deadAfterMs: PATIENT_MS,
    retry: RETRY,
    maxAttempts: 10_000,
  });
  if (connection === undefined || blocking === undefined) throw new Error("no connection");
  const running = runEngine({ settings, connection, blocking, handler, signal: stopping.signal });
  return {
    topics: async () => {
      const owners = await server.client.hgetall(`inlet:{sub.${id}}:owners`);
      return Object.keys(owners).filter((topic) => owners[topic] === settings.name);
    },
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
      for (const { close } of connections) close();
    },
  };
}

const numberOf = (fields: readonly string[]): number => Number(fields[fields.indexOf("data") + 1]);

describe("a topic in ordered mode", () => {
  it.concurrent("keeps its order if a reader receives late entries of a topic that another reader has taken over", async () => {
    const subscription = await makeSubscription(server, 2);
    const slow: string[] = [];
    const late = Promise.withResolvers<void>();
    let held = 0;
    await using reader = await startOrderedReader(
      subscription,
      ({ topic, fields }) => {
        slow.push(`${topic} ${numberOf(fields)}`);
      },
      async (command, answer) => {
        if (command !== "xreadgroup" || answer === null) return answer;
        held++;
        await late.promise;
        return answer;
      },
    );
    await until(async () => (await reader.topics()).length === 2);
    for (const topic of subscription.topics) await subscription.send(topic, 0, 2);
    await until(async () => held > 0 && (await subscription.pending()) > 0);

    const handled: number[] = [];
    let fails = true;
    let tries = 0;
    await using other = await startOrderedReader(subscription, ({ fields }) => {
      tries++;
      if (fails) throw new Error("not yet");
      handled.push(numberOf(fields));
    });
    await until(() => tries > 1);
    const [moved = ""] = await other.topics();
    late.resolve();
    await until(() => slow.length > 1);
    expect(slow.filter((one) => one.startsWith(`${moved} `))).toEqual([]);
    fails = false;
    await until(async () => (await subscription.pending()) === 0);
    expect(handled).toEqual([0, 1]);
  });

  it.concurrent("keeps its order if a reply of Redis with entries of the topic is lost", async () => {
    const subscription = await makeSubscription(server, 1);
    const [topic = ""] = subscription.topics;
    const handled: number[] = [];
    let lost = 0;
    await using reader = await startOrderedReader(
      subscription,
      ({ fields }) => {
        handled.push(numberOf(fields));
      },
      (command, answer) => {
        if (command !== "xreadgroup" || answer === null || lost++ > 0) return answer;
        throw new Error("the connection was reset");
      },
    );
    await until(async () => (await reader.topics()).length === 1);
    await subscription.send(topic, 0, 2);
    await until(() => lost > 0);
    await subscription.send(topic, 2, 4);
    await until(() => handled.length >= 4);
    expect(handled).toEqual([0, 1, 2, 3]);
  });

  it("keeps its order if its reader is suspended until the reader's lease has expired", async () => {
    const subscription = await makeSubscription(server, 1);
    const [topic = ""] = subscription.topics;
    await subscription.send(topic, 0, 3);
    const handled: number[] = [];
    const first = Promise.withResolvers<void>();
    const renewed = Promise.withResolvers<void>();
    let renewals = 0;
    let isSilent = false;
    await using _reader = await startOrderedReader(
      subscription,
      async ({ fields }) => {
        handled.push(numberOf(fields));
        if (numberOf(fields) === 0) await first.promise;
      },
      async (command, answer) => {
        if (command !== "evalsha" || !isSilent) return answer;
        renewals++;
        await renewed.promise;
        return answer;
      },
    );
    await until(() => handled.length === 1);
    isSilent = true;
    await until(() => renewals > 0);
    using clock = moveMonotonicClock();
    clock.ahead(2 * PATIENT_MS);
    first.resolve();
    // The handler has finished, so without the lease check the next entry would start now.
    await until(async () => (await subscription.pending()) === 2);
    expect(handled).toEqual([0]);
    renewed.resolve();
    await until(async () => (await subscription.pending()) === 0);
    expect(handled).toEqual([0, 1, 2]);
  });
});

it("the consumer aborts a handler in ordered mode when the lease on its topic expires", async () => {
  const subscription = await makeSubscription(server, 1);
  await subscription.send(subscription.topics[0] ?? "", 0, 1);
  const told = Promise.withResolvers<void>();
  let tries = 0;
  await using _reader = await startOrderedReader(subscription, async ({ signal }) => {
    if (++tries > 1) return;
    signal.addEventListener("abort", () => told.resolve());
    await told.promise;
  });
  await until(() => tries === 1);
  using clock = moveMonotonicClock();
  clock.ahead(2 * PATIENT_MS);
  await told.promise;
  // The reader owns the topic again, and delivers the entry again.
  await until(async () => (await subscription.pending()) === 0);
  expect(tries).toBe(2);
});

it("the consumer reads a topic while six other topics in ordered mode wait for retries", async () => {
  const subscription = await makeSubscription(server, 7);
  const failing = subscription.topics.slice(0, 6);
  const [other = ""] = subscription.topics.slice(6);
  for (const topic of failing) await subscription.send(topic, 0, 34);
  const failed = new Set<string>();
  const handled: number[] = [];
  const stop = new AbortController();
  const retry = { initialMs: PATIENT_MS, maxMs: PATIENT_MS, jitter: 0 };
  const running = subscription.consumer<number>({ ordered: true, retry }).run(
    ({ data }, { topic }) => {
      if (topic === other) handled.push(data ?? -1);
      else {
        failed.add(topic);
        throw new Error("not yet");
      }
    },
    { signal: stop.signal },
  );
  try {
    await until(() => failed.size === failing.length);
    await until(async () => (await subscription.pending()) === 6 * 34);
    await subscription.send(other, 0, 3);
    await until(() => handled.length === 3);
  } finally {
    stop.abort();
    await running;
  }
  expect(handled).toEqual([0, 1, 2]);
});
