import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { createTestRedis } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../support.ts";

const WRITE_TIMEOUT_MS = 1_000;

it("the Redis write connection accepts a reply that arrived in time, even if the event loop was blocked beyond the write timeout", async () => {
  await using server = await createTestRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS });
  const channel = testChannel();
  const publish = testPublish(redis);
  const published = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  // The call is sent in the next event loop iteration. Then this thread blocks until the timeout has passed.
  await new Promise(setImmediate);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.5 * WRITE_TIMEOUT_MS);
  expect(await published).toMatchObject({ receipts: [{ status: "published" }] });
});

it("the Redis write connection reports that Redis does not reply, even while the gateway writes no events", async () => {
  await using server = await startRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS, checkEveryMs: 50 });
  server.signal("SIGSTOP");
  await until(() => !redis.state().ready);
  // Reported by the write deadline. The socket timeout is longer and would report "not connected".
  expect(redis.state().problems.join()).toContain("does not reply");
  server.signal("SIGCONT");
  await until(() => redis.state().ready);
});

describe("a Redis server that serves reads but rejects writes", () => {
  type Rejection = {
    readonly code: string;
    readonly begin: (server: RedisServer) => Promise<unknown>;
    readonly end: (server: RedisServer) => Promise<unknown>;
  };
  const rejections: readonly Rejection[] = [
    {
      code: "OOM",
      begin: ({ client }) => client.config("SET", "maxmemory", "1"),
      end: ({ client }) => client.config("SET", "maxmemory", "0"),
    },
    {
      code: "NOREPLICAS",
      begin: ({ client }) => client.config("SET", "min-replicas-to-write", "1"),
      end: ({ client }) => client.config("SET", "min-replicas-to-write", "0"),
    },
    {
      code: "MISCONF",
      async begin({ client }) {
        // Redis cannot write the file because a directory has its name.
        const [, dir = ""] = (await client.config("GET", "dir")) as string[];
        await mkdir(join(dir, "dump.rdb"));
        await client.config("SET", "save", "3600 1");
        await client.bgsave();
        await until(async () => (await client.info("persistence")).includes("rdb_last_bgsave_status:err"));
      },
      end: ({ client }) => client.config("SET", "stop-writes-on-bgsave-error", "no"),
    },
  ];

  it.each(
    rejections,
  )("is reported as not ready from the first rejected write ($code) until a write succeeds", async ({
    code,
    begin,
    end,
  }) => {
    await using server = await startRedis();
    // Disables periodic checks, so that only the rejected write can reveal the problem.
    await using redis = await openTestRedis(server.url, { checkEveryMs: 3_600_000 });
    const channel = testChannel();
    const publish = testPublish(redis);
    const publishOne = () => publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
    await publishOne();
    expect(redis.state()).toMatchObject({ ready: true, problems: [] });
    await begin(server);
    await expect(publishOne()).rejects.toThrow(code);
    expect(redis.state()).toMatchObject({ ready: false, problems: [expect.stringContaining(code)] });
    await end(server);
    await publishOne();
    expect(redis.state()).toMatchObject({ ready: true, problems: [] });
  });

  it.each(
    rejections,
  )("is detected by the periodic check ($code), which also detects when writes are possible again", async ({
    code,
    begin,
    end,
  }) => {
    await using server = await startRedis();
    await using redis = await openTestRedis(server.url, { checkEveryMs: 50 });
    await begin(server);
    await until(() => !redis.state().ready);
    expect(redis.state().problems.join()).toContain(code);
    await end(server);
    await until(() => redis.state().ready);
  });

  it("is reported as not ready if its writes do not reach the required replica", async () => {
    const durable = ["--appendonly", "yes", "--appendfsync", "always"];
    await using server = await startRedis(durable);
    await using replica = await startRedis(durable);
    await replica.client.replicaof("127.0.0.1", server.port);
    await until(async () => (await server.client.info("replication")).includes("state=online"));
    await using redis = await openTestRedis(server.url, { durability: "replica", checkEveryMs: 3_600_000 });
    const channel = testChannel();
    const publish = testPublish(redis);
    replica.signal("SIGSTOP");
    const refused = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
    await expect(refused).rejects.toThrow("0 of 1 required replicas");
    expect(redis.state().ready).toBe(false);
    replica.signal("SIGCONT");
    await until(() => redis.state().ready);
  });
});

it("the Redis write connection works with a Redis user that may only run loaded scripts", async () => {
  await using server = await startRedis();
  await server.client.call("acl", "setuser", "default", "-eval");
  await using redis = await openTestRedis(server.url, { checkEveryMs: 20 });
  const channel = testChannel();
  const publish = testPublish(redis);
  // Redis rejects the probe script at each check.
  await until(async () =>
    /cmdstat_eval:.*rejected_calls=[3-9]/.test(await server.client.info("commandstats")),
  );
  await publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  expect(redis.state()).toMatchObject({ ready: true, problems: [] });
});
