import { describe, expect, test } from "vitest";
import type { Publish } from "../../src/bus/publish.ts";
import type { RedisBus } from "../../src/bus/redis.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish, testTopic } from "./support.ts";

const channel = testChannel();
const publishOne = (publish: Publish, data = "{}") =>
  publish({ channel, events: [testEvent(channel, undefined, { data })], policy: testPolicy }, now);

async function refusal(publishing: Promise<unknown>): Promise<{ error: unknown; afterMs: number }> {
  const start = performance.now();
  const error = await publishing.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, afterMs: performance.now() - start };
}

async function recovers(publish: Publish, redis: RedisBus): Promise<void> {
  await until(() => redis.state().ready);
  expect((await publishOne(publish)).receipts[0]?.status).toBe("published");
}

async function withRedis(
  options: readonly string[],
  run: (parts: { server: RedisServer; redis: RedisBus; publish: Publish }) => Promise<void>,
) {
  await using server = await startRedis(options);
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: 1000, checkEveryMs: 500 });
  await run({ server, redis, publish: testPublish(redis) });
}

describe.concurrent("publishing is refused as unavailable, and recovers by itself,", () => {
  test("when Redis stands still: within its timeout, the outcome unknown", async () => {
    await withRedis([], async ({ server, redis, publish }) => {
      await publishOne(publish);
      server.signal("SIGSTOP");
      const { error, afterMs } = await refusal(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(afterMs).toBeLessThan(2000);
      expect(redis.state().ready).toBe(false);
      expect((await refusal(publishOne(publish))).afterMs).toBeLessThan(100);
      server.signal("SIGCONT");
      await recovers(publish, redis);
    });
  });

  test("when Redis stands still for as long as by default a write may take", async () => {
    await using server = await startRedis();
    await using redis = await openTestRedis(server.url);
    const publish = testPublish(redis);
    server.signal("SIGSTOP");
    const { error, afterMs } = await refusal(publishOne(publish));
    server.signal("SIGCONT");
    expect(error).toBeInstanceOf(UnavailableError);
    expect(afterMs).toBeLessThan(4500);
  });

  test("when Redis is too slow for all pieces of a delivery, in the same time", async () => {
    await withRedis(["--enable-debug-command", "yes"], async ({ server, publish }) => {
      const events = Array.from({ length: 5000 }, () => testEvent(channel));
      const publishing = refusal(publish({ channel, events, policy: testPolicy }, now));
      const slow = setInterval(() => server.client.call("debug", "sleep", "0.2").catch(() => {}), 50);
      const { error, afterMs } = await publishing;
      clearInterval(slow);
      expect(error).toBeInstanceOf(UnavailableError);
      expect(afterMs).toBeLessThan(2000);
    });
  });

  test("when Redis has paused its writes", async () => {
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.call("client", "pause", 2500, "write");
      const { error, afterMs } = await refusal(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(afterMs).toBeLessThan(2000);
      await until(async () => (await refusal(publishOne(publish))).error === undefined);
      expect(redis.state().ready).toBe(true);
    });
  });

  test("when Redis is gone, at once", async () => {
    await withRedis(["--appendonly", "yes"], async ({ server, redis, publish }) => {
      await publishOne(publish);
      const restarted = server.restart();
      await until(() => !redis.state().ready);
      const { error, afterMs } = await refusal(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(afterMs).toBeLessThan(100);
      await restarted;
      await recovers(publish, redis);
    });
  });

  test("when Redis is full, with nothing written", async () => {
    await withRedis(
      ["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"],
      async ({ server, redis, publish }) => {
        const data = "x".repeat(200_000);
        let error: unknown;
        for (let i = 0; i < 100 && error === undefined; i++)
          ({ error } = await refusal(publishOne(publish, data)));
        expect(error).toBeInstanceOf(UnavailableError);
        expect(String(error)).toContain("OOM");
        const length = await server.client.xlen(testTopic(channel));
        await refusal(publishOne(publish, data));
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
      const { error } = await refusal(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      await until(() => redis.state().problems.some((problem) => problem.includes("read-only replica")));
      await server.client.replicaof("NO", "ONE");
      await recovers(publish, redis);
    });
  });

  test("while Redis loads its data", async () => {
    const slow = ["--appendonly", "yes", "--key-load-delay", "400", "--aof-use-rdb-preamble", "no"];
    await withRedis(
      [...slow, "--loading-process-events-interval-bytes", "1024"],
      async ({ server, redis, publish }) => {
        for (let i = 0; i < 4; i++) {
          const events = Array.from({ length: 500 }, () => testEvent(channel));
          await publish({ channel, events, policy: testPolicy }, now);
        }
        const restarted = server.restart();
        await until(() => redis.state().problems.some((problem) => problem.includes("loading")));
        const { error } = await refusal(publishOne(publish));
        expect(error).toBeInstanceOf(UnavailableError);
        await restarted;
        await recovers(publish, redis);
        expect(await server.client.xlen(testTopic(channel))).toBe(2001);
      },
    );
  });

  test("when Redis begins to evict", async () => {
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.config("SET", "maxmemory-policy", "allkeys-lru");
      await until(() => !redis.state().ready);
      expect(redis.state().problems.join()).toContain("noeviction");
      expect((await refusal(publishOne(publish))).error).toBeInstanceOf(UnavailableError);
      await server.client.config("SET", "maxmemory-policy", "noeviction");
      await recovers(publish, redis);
    });
  });

  test("when too much is on its way already, so that memory stays bounded", async () => {
    await using server = await startRedis();
    await using redis = await openTestRedis(server.url, { writeTimeoutMs: 1000 });
    const publish = testPublish(redis, { maxBytesInFlight: 1_000_000 });
    server.signal("SIGSTOP");
    const data = "x".repeat(300_000);
    const results = await Promise.all(Array.from({ length: 20 }, () => refusal(publishOne(publish, data))));
    server.signal("SIGCONT");
    expect(results.filter(({ afterMs }) => afterMs < 200)).toHaveLength(17);
    expect(results.every(({ error }) => error instanceof UnavailableError)).toBe(true);
    await recovers(publish, redis);
  });
});
