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

const rejectionOf = (publishing: Promise<unknown>): Promise<unknown> =>
  publishing.then(
    () => undefined,
    (reason: unknown) => reason,
  );

async function recovers(publish: Publish, redis: RedisBus): Promise<void> {
  await until(() => redis.state().ready);
  expect((await publishOne(publish)).receipts[0]?.status).toBe("published");
}

describe("publishing while Redis does not reply", () => {
  /** Default write timeout, plus one deadline check. */
  const TIMEOUT_MS = 3_500 + 100;

  let server: RedisServer;
  let redis: RedisBus;
  let publish: Publish;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server[Symbol.asyncDispose]());
  beforeEach(async () => {
    // Fakes only the timers of the write deadline. Connecting and checking use real time.
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    redis = await openTestRedis(server.url);
    publish = testPublish(redis);
  });
  afterEach(async () => {
    await redis[Symbol.asyncDispose]();
    vi.useRealTimers();
  });

  /** Waits until earlier publishes were sent to Redis. */
  async function sent(): Promise<void> {
    await turn();
    await turn();
  }

  test("fails after the timeout with an unknown outcome, and from then on fails at once until Redis replies again", async () => {
    await publishOne(publish);
    server.signal("SIGSTOP");
    const rejected = rejectionOf(publishOne(publish));
    await sent();
    vi.advanceTimersByTime(TIMEOUT_MS);
    const error = await rejected;
    expect(error).toBeInstanceOf(UnavailableError);
    expect(String(error)).toContain("within 3500 ms; the outcome is unknown");
    expect(redis.state().ready).toBe(false);
    // The virtual clock does not advance here, so this rejection is immediate.
    expect(await rejectionOf(publishOne(publish))).toBeInstanceOf(UnavailableError);
    server.signal("SIGCONT");
    await recovers(publish, redis);
  });

  test("fails while Redis pauses writes with CLIENT PAUSE, and succeeds when Redis resumes", async () => {
    await server.client.call("client", "pause", 3_600_000, "write");
    const rejected = rejectionOf(publishOne(publish));
    await sent();
    vi.advanceTimersByTime(TIMEOUT_MS);
    expect(await rejected).toBeInstanceOf(UnavailableError);
    await server.client.call("client", "unpause");
    await until(async () => (await rejectionOf(publishOne(publish))) === undefined);
    expect(redis.state().ready).toBe(true);
  });

  test("applies one timeout to a whole delivery, even if the delivery needs several Redis calls", async () => {
    const own = testChannel();
    const slow = testPublish(redis, { onCall: () => vi.advanceTimersByTime(1_000) });
    const events = Array.from({ length: 3_000 }, () => testEvent(own));
    const error = await rejectionOf(slow({ channel: own, events, policy: testPolicy }, now));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(String(error)).toContain("too slow: not all parts of the delivery were written");
    // Four pieces of 500 events, one second each.
    expect(await server.client.xlen(testTopic(own))).toBe(2_000);
    await recovers(publish, redis);
  });

  test("fails at once for an organization whose waiting deliveries have used up its share of memory", async () => {
    const bounded = testPublish(redis, { maxBytesInFlight: 700_000 });
    server.signal("SIGSTOP");
    const data = "x".repeat(100_000);
    const errors: unknown[] = [];
    const all = Promise.all(
      Array.from({ length: 20 }, async () => void errors.push(await rejectionOf(publishOne(bounded, data)))),
    );
    await sent();
    expect(errors).toHaveLength(17);
    const other = testChannel();
    const event = testEvent(other, undefined, { data });
    const others = rejectionOf(bounded({ channel: other, events: [event], policy: testPolicy }, now));
    await sent();
    vi.advanceTimersByTime(TIMEOUT_MS);
    await all;
    expect(errors.every((error) => error instanceof UnavailableError)).toBe(true);
    expect(errors.filter((error) => String(error).includes("outcome is unknown"))).toHaveLength(3);
    // It was within its share and waited for the call in flight.
    expect(String(await others)).toContain("does not reply");
    server.signal("SIGCONT");
    await recovers(bounded, redis);
  });
});

describe("publishing", () => {
  async function withRedis(
    options: readonly string[],
    run: (parts: { server: RedisServer; redis: RedisBus; publish: Publish }) => Promise<void>,
  ) {
    await using server = await startRedis(options);
    await using redis = await openTestRedis(server.url, { checkEveryMs: 100 });
    await run({ server, redis, publish: testPublish(redis) });
  }

  test("fails without delay after Redis is killed, and succeeds after Redis restarts", async () => {
    await withRedis(["--appendonly", "yes"], async ({ server, redis, publish }) => {
      await publishOne(publish);
      server.signal("SIGKILL");
      await until(() => !redis.state().ready);
      const error = await rejectionOf(publishOne(publish));
      expect(error).toBeInstanceOf(UnavailableError);
      expect(String(error)).toContain("not connected");
      await server.restart();
      await recovers(publish, redis);
    });
  });

  test("fails without partial writes while Redis has no free memory, and succeeds when memory is free again", async () => {
    await withRedis(
      ["--maxmemory", "8mb", "--maxmemory-policy", "noeviction"],
      async ({ server, redis, publish }) => {
        const data = "x".repeat(200_000);
        let error: unknown;
        for (let i = 0; i < 100 && error === undefined; i++)
          error = await rejectionOf(publishOne(publish, data));
        expect(error).toBeInstanceOf(UnavailableError);
        expect(String(error)).toContain("OOM");
        // Sets a limit below the used memory. At the limit, a freed client buffer would allow one more write.
        await server.client.config("SET", "maxmemory", "2mb");
        const length = await server.client.xlen(testTopic(channel));
        expect(String(await rejectionOf(publishOne(publish, data)))).toContain("OOM");
        expect(await server.client.xlen(testTopic(channel))).toBe(length);
        await until(() => redis.state().memoryAlarm);
        await server.client.config("SET", "maxmemory", "100mb");
        await recovers(publish, redis);
        await until(() => !redis.state().memoryAlarm);
      },
    );
  });

  test("fails while Redis is a read-only replica, and succeeds when Redis is a master again", async () => {
    await using master = await startRedis();
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.replicaof("127.0.0.1", master.port);
      expect(await rejectionOf(publishOne(publish))).toBeInstanceOf(UnavailableError);
      await until(() => redis.state().problems.some((problem) => problem.includes("read-only replica")));
      await server.client.replicaof("NO", "ONE");
      await recovers(publish, redis);
    });
  });

  test("fails while Redis loads its data, and succeeds afterwards", async () => {
    // Loading takes half a minute. Redis mostly sleeps and replies every few keys.
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
      expect(await rejectionOf(publishOne(publish))).toBeInstanceOf(UnavailableError);
      // This client does not wait for loading to end. It makes Redis load the rest at full speed.
      const client = new Redis({ port: server.port, enableReadyCheck: false });
      await client.config("SET", "key-load-delay", "0");
      await restarted;
      await recovers(publish, redis);
      expect(await client.xlen(testTopic(channel))).toBe(length + 1);
      client.disconnect();
    });
  });

  test("fails while the maxmemory-policy of Redis allows evicting keys, and succeeds when the policy is corrected", async () => {
    await withRedis([], async ({ server, redis, publish }) => {
      await server.client.config("SET", "maxmemory-policy", "allkeys-lru");
      await until(() => !redis.state().ready);
      expect(redis.state().problems.join()).toContain("noeviction");
      expect(await rejectionOf(publishOne(publish))).toBeInstanceOf(UnavailableError);
      await server.client.config("SET", "maxmemory-policy", "noeviction");
      await recovers(publish, redis);
    });
  });
});
