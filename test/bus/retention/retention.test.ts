import { describe, expect, test } from "vitest";
import {
  createTrimAcknowledged,
  createTrimTopic,
  type RetainedTopic,
  startRetentionSweeper,
} from "../../../src/bus/retention/retention.ts";
import { createLog } from "../../../src/log.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import {
  now,
  openedBus,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
  testTopic,
} from "../support.ts";

const { server, redis } = openedBus();

const roomy = { maxAgeSeconds: 3600, maxEntries: 1_000_000, maxBytes: 1e9 };
const log = createLog({ level: "silent" });

async function filled(count: number, data = "x".repeat(500)): Promise<string> {
  const channel = testChannel();
  const publish = testPublish(redis);
  for (let left = count; left > 0; left -= 500) {
    const events = Array.from({ length: Math.min(500, left) }, () =>
      testEvent(channel, undefined, { data, remembered: false }),
    );
    await publish({ channel, events, policy: testPolicy }, now);
  }
  return testTopic(channel);
}

describe("the stream of a topic", () => {
  test("is trimmed exactly to the topic's age limit, even if it has few entries and no new ones", async () => {
    const topic = testTopic(testChannel());
    const ms = Date.now();
    for (const age of [10_800_000, 7_201_000, 3_600_000, 0])
      await server.client.xadd(topic, `${ms - age}-0`, "a", "b");
    const trimmed = await createTrimTopic({ redis })({ topic, ...roomy, maxAgeSeconds: 7_200 });
    expect(trimmed).toEqual({ removed: 2, length: 2, bytes: await server.client.memory("USAGE", topic) });
  });

  test("is trimmed to the topic's maximum number of entries", async () => {
    const topic = await filled(1000);
    expect(await createTrimTopic({ redis })({ topic, ...roomy, maxEntries: 130 })).toEqual({
      removed: 870,
      length: 130,
      bytes: expect.any(Number),
    });
  });

  test("is trimmed to the topic's maximum number of bytes, oldest entries first", async () => {
    const topic = await filled(1000);
    const newest = (await server.client.xrevrange(topic, "+", "-", "COUNT", 1))[0]?.[0];
    const maxBytes = 250_000;
    const { length } = await createTrimTopic({ redis })({ topic, ...roomy, maxBytes });
    const bytes = Number(await server.client.memory("USAGE", topic, "SAMPLES", 0));
    expect(bytes).toBeLessThanOrEqual(maxBytes * 1.05);
    expect(bytes).toBeGreaterThan(maxBytes * 0.7);
    expect(length).toBe(await server.client.xlen(topic));
    expect((await server.client.xrevrange(topic, "+", "-", "COUNT", 1))[0]?.[0]).toBe(newest);
  });

  test("is trimmed even if Redis has no free memory", async () => {
    await using full = await startRedis();
    await using bus = await openTestRedis(full.url);
    for (let i = 0; i < 100; i++) await full.client.xadd("topic", "*", "a", "b");
    await full.client.config("SET", "maxmemory", "1");
    await expect(full.client.xadd("topic", "*", "a", "b")).rejects.toThrow(/OOM/);
    const { removed } = await createTrimTopic({ redis: bus })({ topic: "topic", ...roomy, maxEntries: 10 });
    expect(removed).toBe(90);
  });

  test("is trimmed in several Redis calls if it has too many entries for one call", async () => {
    const topic = testTopic(testChannel());
    const fill = "for i = 1, 45000 do redis.call('XADD', KEYS[1], '*', 'a', 'b') end";
    await server.client.eval(fill, 1, topic);
    expect((await createTrimTopic({ redis })({ topic, ...roomy, maxEntries: 10 })).length).toBe(10);
  });

  test("can be trimmed without an error if it does not exist", async () => {
    expect(await createTrimTopic({ redis })({ topic: "events.none", ...roomy })).toEqual({
      removed: 0,
      length: 0,
      bytes: 0,
    });
  });
});

test("trimming acknowledged entries removes entries that all consumer groups have acknowledged, and keeps pending and unread entries", async () => {
  const topic = await filled(5);
  const [first = "", second = "", third = ""] = (await server.client.xrange(topic, "-", "+")).map(
    ([id]) => id,
  );
  const trim = createTrimAcknowledged({ redis });
  const ids = async () => (await server.client.xrange(topic, "-", "+")).map(([id]) => id);
  await trim(topic);
  expect(await ids()).toHaveLength(5);
  for (const group of ["quick", "slow"]) await server.client.xgroup("CREATE", topic, group, "0-0");
  const read = (group: string, count: number) =>
    server.client.xreadgroup("GROUP", group, "reader", "COUNT", count, "STREAMS", topic, ">");
  await read("quick", 5);
  await server.client.xack(topic, "quick", ...(await ids()));
  await read("slow", 3);
  await server.client.xack(topic, "slow", first, third);
  // One pending entry keeps all later entries.
  await trim(topic);
  expect((await ids())[0]).toBe(second);
  await server.client.xack(topic, "slow", second);
  expect(await trim(topic)).toBe(await server.client.memory("USAGE", topic));
  expect(await ids()).toHaveLength(2);
});

test("the retention sweeper trims every topic and reports the topic's new length", async () => {
  const limits = { ...roomy, maxEntries: 10 };
  const retained: RetainedTopic[] = [{ topic: await filled(50), ...limits }];
  const left = new Map<string, number>();
  await using _ = startRetentionSweeper({
    redis,
    log,
    intervalMs: 20,
    topics: async function* () {
      yield* retained;
    },
    onSwept: (topic, entries) => void left.set(topic, entries),
  });
  const [{ topic: first } = { topic: "" }] = retained;
  await until(() => left.get(first) === 10);
  const second = await filled(30);
  retained.push({ topic: second, ...limits });
  await until(() => left.get(second) === 10);
});

test("the retention sweeper continues with the next topic if a topic cannot be trimmed", async () => {
  const broken = `events.broken.${Date.now()}`;
  await server.client.set(broken, "not a stream");
  const sound = await filled(50);
  await using _ = startRetentionSweeper({
    redis,
    log,
    intervalMs: 20,
    topics: async function* () {
      for (const topic of [broken, sound]) yield { topic, ...roomy, maxEntries: 10 };
    },
  });
  await until(async () => (await server.client.xlen(sound)) === 10);
});

test("a topic with many new events exceeds its byte limit by less than a quarter, even before the next periodic trimming", async () => {
  const channel = testChannel();
  const topic = testTopic(channel);
  const maxBytes = 2_000_000;
  await using sweeper = startRetentionSweeper({
    redis,
    log,
    intervalMs: 3_600_000,
    topics: async function* () {},
  });
  const publish = testPublish(redis, { onAppended: sweeper.noteAppended });
  const data = "x".repeat(2000);
  const bytes = async () => Number(await server.client.memory("USAGE", topic, "SAMPLES", 0));
  for (let i = 0; i < 40; i++) {
    const events = Array.from({ length: 50 }, () =>
      testEvent(channel, undefined, { data, remembered: false }),
    );
    await publish({ channel, events, policy: { ...testPolicy, maxBytes } }, now);
    // Trimming lags behind slightly. Without it the topic would grow far beyond this bound.
    await until(async () => (await bytes()) < maxBytes * 1.25);
  }
  expect(await bytes()).toBeGreaterThan(maxBytes * 0.7);
});
