import { expect, it } from "vitest";
import { connect } from "../../src/consumer/connection.ts";
import { runEngine } from "../../src/consumer/engine.ts";
import { type Ordering, readOptions } from "../../src/consumer/options.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, PATIENT_MS, startTestRedis, type TestSubscription } from "./support.ts";

const server = opened(startTestRedis);

const dataOf = (fields: readonly string[]): number => Number(fields[fields.indexOf("data") + 1]);

/** Starts a reader of batches. `isFailed` decides which events of a batch fail. */
async function startReader(
  { id }: TestSubscription,
  ordered: Ordering,
  limits: { readonly maxEvents: number; readonly maxBytes?: number; readonly maxWaitMs?: number },
  isFailed: (data: number, batch: readonly number[]) => boolean = () => false,
): Promise<AsyncDisposable & { readonly batches: number[][] }> {
  const connections = [await connect(server.url, () => {}), await connect(server.url, () => {})] as const;
  const [connection, blocking] = connections;
  const stopping = new AbortController();
  const batches: number[][] = [];
  const running = runEngine({
    settings: readOptions({
      ...{ redis: server.url, subscription: id, ordered, concurrency: 2, deadAfterMs: PATIENT_MS },
      ...{ retry: { initialMs: 5, maxMs: 5, jitter: 0 }, maxAttempts: 4, onProblem() {} },
    }),
    connection,
    blocking,
    signal: stopping.signal,
    handler() {
      throw new Error("entries are handled in batches");
    },
    batching: {
      ...{ maxBytes: 1_000_000, maxWaitMs: 20, ...limits },
      sizeOf: (fields) => fields.join("").length,
      async handler(entries) {
        const batch = entries.map(({ fields }) => dataOf(fields));
        batches.push(batch);
        const failed = entries.filter((_, index) => isFailed(batch[index] ?? -1, batch));
        return new Map(failed.map((entry) => [entry, new Error("no")]));
      },
    },
  });
  return {
    batches,
    async [Symbol.asyncDispose]() {
      stopping.abort();
      await running;
      for (const { close } of connections) close();
    },
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

it.each([
  [false],
  [true],
  ["key"],
] as const)("batches with `ordered: %j` have at most `maxEvents` events, and all events are handled", async (ordered) => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 100, (n) => `k${n % 3}`);
  await using reader = await startReader(subscription, ordered, { maxEvents: 8 });
  await until(async () => reader.batches.flat().length >= 100 && (await subscription.pending()) === 0);
  expect(reader.batches.flat().toSorted((a, b) => a - b)).toEqual(upTo(100));
  expect(Math.max(...reader.batches.map(({ length }) => length))).toBe(8);
  if (ordered === true) expect(reader.batches.flat()).toEqual(upTo(100));
  for (const key of [0, 1, 2]) {
    const ofKey = reader.batches.flat().filter((n) => n % 3 === key);
    if (ordered === "key") expect(ofKey).toEqual(upTo(100).filter((n) => n % 3 === key));
  }
});

it("a batch waits for more events, but not longer than `maxWaitMs`, and not if they exceed `maxBytes`", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 1);
  const [[, fields] = ["", []]] = await server.client.xrange(topic, "-", "+");
  const maxBytes = 3 * fields.join("").length + 2;
  await using reader = await startReader(subscription, true, { maxEvents: 100, maxBytes, maxWaitMs: 50 });
  await until(async () => (await subscription.pending()) === 0 && reader.batches.length === 1);
  await subscription.send(topic, 1, 8);
  await until(async () => reader.batches.flat().length === 8);
  expect(Math.max(...reader.batches.map(({ length }) => length))).toBe(3);
  expect(reader.batches.flat()).toEqual(upTo(8));
});

it("a failed event is tried again alone of its key and becomes a dead letter, and the events behind it follow", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 6, (n) => `k${n % 2}`);
  await using reader = await startReader(subscription, "key", { maxEvents: 6 }, (n) => n === 2);
  await until(async () => reader.batches.flat().includes(4) && (await subscription.pending()) === 0);
  expect((await subscription.dead()).map(({ data }) => data)).toEqual(["2"]);
  const ofKey = reader.batches
    .map((batch) => batch.filter((n) => n % 2 === 0))
    .filter((one) => one.length > 0);
  expect(ofKey).toEqual([[0, 2, 4], [2], [2], [2], [4]]);
  expect(reader.batches.flat().filter((n) => n % 2 === 1)).toEqual([1, 3, 5]);
});
