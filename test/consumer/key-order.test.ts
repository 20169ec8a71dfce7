import { expect, it } from "vitest";
import type { ConsumerOptions, ConsumerProblem, DeliveryContext } from "../../src/consumer/consumer.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { makeSubscription, PATIENT_MS, startTestRedis, type TestSubscription } from "./support.ts";

const server = opened(startTestRedis);

/** Runs a consumer that handles keys in order. */
function startReader(
  subscription: TestSubscription,
  handle: (data: number, context: DeliveryContext) => Promise<void> | void,
  options: Partial<ConsumerOptions> = {},
): AsyncDisposable {
  const stop = new AbortController();
  const running = subscription
    .consumer<number>({ ordered: "key", onProblem() {}, ...options })
    .run(({ data }, context) => handle(data ?? -1, context), { signal: stop.signal });
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

it("the events of a key run one at a time and in order, while other keys and events without a key run too", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  const keyOf = (n: number): string | undefined => (n % 4 === 3 ? undefined : `k${n % 4}`);
  await subscription.send(topic, 0, 200, keyOf);
  const handled = new Map<string | undefined, number[]>();
  const running = new Map<string | undefined, number>();
  let [most, mostOfKey] = [0, 0];
  await using _reader = startReader(
    subscription,
    async (n) => {
      const key = keyOf(n);
      running.set(key, (running.get(key) ?? 0) + 1);
      most = Math.max(
        most,
        [...running.values()].reduce((sum, count) => sum + count, 0),
      );
      if (key !== undefined) mostOfKey = Math.max(mostOfKey, running.get(key) ?? 0);
      await new Promise(setImmediate);
      running.set(key, (running.get(key) ?? 0) - 1);
      handled.set(key, [...(handled.get(key) ?? []), n]);
    },
    { concurrency: 6 },
  );
  await until(async () => (await subscription.pending()) === 0 && handled.get(undefined)?.length === 50);
  for (const key of ["k0", "k1", "k2"])
    expect(handled.get(key)).toEqual(upTo(200).filter((n) => keyOf(n) === key));
  expect([most, mostOfKey]).toEqual([6, 1]);
});

it("a failing event delays only its own key until it is a dead letter, however many events of this key wait", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  const keyOf = (n: number): string => (n < 2_000 ? "broken" : `k${n}`);
  await subscription.send(topic, 0, 2_300, keyOf);
  const handled: number[] = [];
  const others = (): number => handled.filter((n) => n >= 2_000).length;
  const retried = Promise.withResolvers<void>();
  const problems: ConsumerProblem[] = [];
  await using _reader = startReader(
    subscription,
    async (n, { attempt }) => {
      if (n === 0 && attempt > 1) await retried.promise;
      if (n === 0) throw new Error("no");
      handled.push(n);
    },
    {
      ...{ concurrency: 2, maxAttempts: 2, retry: { initialMs: 1, maxMs: 1, jitter: 0 } },
      onProblem: (problem) => void problems.push(problem),
    },
  );
  await until(() => others() === 300);
  expect(handled.length).toBe(300);
  retried.resolve();
  await until(async () => handled.length === 2_299 && (await subscription.pending()) === 0);
  expect(handled.slice(300)).toEqual(upTo(2_000).slice(1));
  expect(problems.map(({ kind }) => kind)).toEqual(["failed", "dead"]);
  expect((await subscription.dead()).map(({ data }) => data)).toEqual(["0"]);
});

it("events behind a failing one are lost if retention trims them, and dropped if the subscription is rewound", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 30, () => "k");
  const handled: number[] = [];
  const lost: string[] = [];
  let isFixed = false;
  await using _reader = startReader(
    subscription,
    (n) => {
      if (n === 0 && !isFixed) throw new Error("no");
      handled.push(n);
    },
    {
      retry: { initialMs: 20, maxMs: 20, jitter: 0 },
      maxAttempts: 100_000,
      onProblem: (problem) => void (problem.kind === "lost" && lost.push(...problem.entryIds)),
    },
  );
  await until(async () => (await subscription.pending()) === 30);
  const ids = (await server.client.xrange(topic, "-", "+")).map(([id]) => id);
  await server.client.xdel(topic, ids[5] ?? "", ids[20] ?? "");
  await server.client.xack(topic, subscription.id, ids[10] ?? "");
  isFixed = true;
  await until(async () => (await subscription.pending()) === 0);
  expect(handled).toEqual(upTo(30).filter((n) => ![5, 10, 20].includes(n)));
  expect(lost).toEqual([ids[5], ids[20]]);
});

it("a reader that takes over the events of a key does not count attempts that were never made", async () => {
  const subscription = await makeSubscription(server, 1);
  const [topic = ""] = subscription.topics;
  await subscription.send(topic, 0, 50, () => "k");
  for (let stops = 0; stops < 3; stops++) {
    let tries = 0;
    await using _reader = startReader(
      subscription,
      () => {
        tries++;
        throw new Error("no");
      },
      { retry: { initialMs: PATIENT_MS, maxMs: PATIENT_MS, jitter: 0 } },
    );
    await until(async () => tries === 1 && (await subscription.pending()) === 50);
  }
  const attempts: number[] = [];
  await using _reader = startReader(subscription, (_, { attempt }) => void attempts.push(attempt));
  await until(async () => (await subscription.pending()) === 0);
  expect(attempts).toEqual([4, ...Array.from({ length: 49 }, () => 1)]);
});
