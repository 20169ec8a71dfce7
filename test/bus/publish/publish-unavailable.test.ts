import { setImmediate as turn } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { RedisBus } from "../../../src/bus/connection/redis.ts";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import {
  now,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
  testTopic,
} from "../support.ts";

const channel = testChannel();
const publishOne = (publish: Publish, data = "{}") =>
  publish({ channel, events: [testEvent(channel, undefined, { data })], policy: testPolicy }, now);

const refusal = (publishing: Promise<unknown>): Promise<unknown> =>
  publishing.then(
    () => undefined,
    (reason: unknown) => reason,
  );

async function recovers(publish: Publish, redis: RedisBus): Promise<void> {
  await until(() => redis.state().ready);
  expect((await publishOne(publish)).receipts[0]?.status).toBe("published");
}

describe("a publish that Redis does not answer in time", () => {
  /** What a write may take by default, and until that is looked at. */
  const PATIENCE_MS = 3_500 + 100;

  let server: RedisServer;
  let redis: RedisBus;
  let publish: Publish;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    // Only what measures a write's time: connections are made and looked at in real time.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    redis = await openTestRedis(server.url);
    publish = testPublish(redis);
  });
  afterEach(async () => {
    await redis[Symbol.asyncDispose]();
    vi.useRealTimers();
  });

  /** What was published before is on its way to Redis. */
  async function sent(): Promise<void> {
    await turn();
    await turn();
  }

  test("is refused after its timeout, its outcome unknown, and the next ones at once", async () => {
    await publishOne(publish);
    server.signal("SIGSTOP");
    const refused = refusal(publishOne(publish));
    await sent();
    vi.advanceTimersByTime(PATIENCE_MS);
    const error = await refused;
    expect(error).toBeInstanceOf(UnavailableError);
    expect(String(error)).toContain("within 3500 ms; the outcome is unknown");
    expect(redis.state().ready).toBe(false);
    // No time passes any more.
    expect(await refusal(publishOne(publish))).toBeInstanceOf(UnavailableError);
    server.signal("SIGCONT");
    await recovers(publish, redis);
  });

  test("is refused while Redis has paused its writes, and passes when it goes on", async () => {
    await server.client.call("client", "pause", 3_600_000, "write");
    const refused = refusal(publishOne(publish));
    await sent();
    vi.advanceTimersByTime(PATIENCE_MS);
    expect(await refused).toBeInstanceOf(UnavailableError);
    await server.client.call("client", "unpause");
    await until(async () => (await refusal(publishOne(publish))) === undefined);
    expect(redis.state().ready).toBe(true);
  });

  test("has one timeout for all its pieces, however many they are", async () => {
    const own = testChannel();
    const slow = testPublish(redis, { onCall: () => vi.advanceTimersByTime(1_000) });
    const events = Array.from({ length: 3_000 }, () => testEvent(own));
    const error = await refusal(slow({ channel: own, events, policy: testPolicy }, now));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(String(error)).toContain("too slow for all of a delivery");
    // Four pieces of 500, a second each.
    expect(await server.client.xlen(testTopic(own))).toBe(2_000);
    await recovers(publish, redis);
  });

  test("takes only its share of memory, and refuses more at once, but not another organization's", async () => {
    const bounded = testPublish(redis, { maxBytesInFlight: 700_000 });
    server.signal("SIGSTOP");
    const data = "x".repeat(100_000);
    const errors: unknown[] = [];
    const all = Promise.all(
      Array.from({ length: 20 }, async () => void errors.push(await refusal(publishOne(bounded, data)))),
    );
    await sent();
    expect(errors).toHaveLength(17);
    const other = testChannel();
    const event = testEvent(other, undefined, { data });
    const others = refusal(bounded({ channel: other, events: [event], policy: testPolicy }, now));
    await sent();
    vi.advanceTimersByTime(PATIENCE_MS);
    await all;
    expect(errors.every((error) => error instanceof UnavailableError)).toBe(true);
    expect(errors.filter((error) => String(error).includes("outcome is unknown"))).toHaveLength(3);
    // It had its share, and waited for the call under way.
    expect(String(await others)).toContain("does not answer");
    server.signal("SIGCONT");
    await recovers(bounded, redis);
  });
});

describe("publishing is refused, and recovers by itself,", () => {
  async function withRedis(
    options: readonly string[],
    run: (parts: { server: RedisServer; redis: RedisBus; publish: Publish }) => Promise<void>,
  ) {
    await using server = await startRedis(options);
    await using redis = await openTestRedis(server.url, { checkEveryMs: 100 });
    await run({ server, redis, publish: testPublish(redis) });
  }

  test("when Redis is gone, without waiting for it", async () => {
    await withRedis(["--appendonly", "yes"], async ({ server, redis, publish }) => {
      await publishOne(publish);
      server.signal("SIGKILL");
      await until(() => !redis.state().ready);
      const error = await refusal(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(String(error)).toContain("not connected");
      await server.restart();
      await recovers(publish, redis);
    });
  });

  test("when Redis is full, with nothing written", async () => {
    await withRedis(
      ["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"],
      async ({ server, redis, publish }) => {
        const data = "x".repeat(200_000);
        let error: unknown;
        for (let i = 0; i < 100 && error === undefined; i++) error = await refusal(publishOne(publish, data));
        expect(error).toBeInstanceOf(UnavailableError);
        expect(String(error)).toContain("OOM");
        // Less than it holds: at the edge, a buffer that a client gives back makes room for one more.
        await server.client.config("SET", "maxmemory", "2mb");
        const length = await server.client.xlen(testTopic(channel));
        expect(String(await refusal(publishOne(publish, data)))).toContain("OOM");
        expect(await server.client.xlen(testTopic(channel))).toBe(length);
        await until(() => redis.state().memoryAlarm);
        await server.client.config("SET", "maxmemory", "100mb");
        await recovers(publish, redis);
        await until(() => !redis.state().memoryAlarm);
      },
    );
  });

  test("when Redis becomes a replica", async () => {
    await using master = await startRedis();
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.replicaof("127.0.0.1", master.port);
      expect(await refusal(publishOne(publish))).toBeInstanceOf(UnavailableError);
      await until(() => redis.state().problems.some((problem) => problem.includes("read-only replica")));
      await server.client.replicaof("NO", "ONE");
      await recovers(publish, redis);
    });
  });

  test("while Redis loads its data", async () => {
    // Half a minute, in which it is mostly asleep, and answers every few keys.
    const slow = ["--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"];
    slow.push("--rdbcompression", "no");
    await withRedis(slow, async ({ server, redis, publish }) => {
      await publishOne(publish);
      const fill = "for i = 1, 3000 do redis.call('SET', 'fill.' .. i, string.rep('x', 250) .. i) end";
      await server.client.eval(fill, 0);
      const length = await server.client.xlen(testTopic(channel));
      await server.client.call("save");
      const restarted = server.restart();
      await until(() => redis.state().problems.some((problem) => problem.includes("loading")));
      expect(await refusal(publishOne(publish))).toBeInstanceOf(UnavailableError);
      // One that does not wait for the end of it; the rest is loaded at full speed.
      const client = new Redis({ port: server.port, enableReadyCheck: false });
      await client.config("SET", "key-load-delay", "0");
      await restarted;
      await recovers(publish, redis);
      expect(await client.xlen(testTopic(channel))).toBe(length + 1);
      client.disconnect();
    });
  });

  test("when Redis begins to evict", async () => {
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.config("SET", "maxmemory-policy", "allkeys-lru");
      await until(() => !redis.state().ready);
      expect(redis.state().problems.join()).toContain("noeviction");
      expect(await refusal(publishOne(publish))).toBeInstanceOf(UnavailableError);
      await server.client.config("SET", "maxmemory-policy", "noeviction");
      await recovers(publish, redis);
    });
  });
});
