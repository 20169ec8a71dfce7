import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { createTestRedis } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../support.ts";

const WRITE_TIMEOUT_MS = 1_000;

it("reads an answer that came while the event loop stood still, longer than a write may take", async () => {
  await using server = await createTestRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS });
  const channel = testChannel();
  const publish = testPublish(redis);
  const published = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  // The call has left by the next turn; then this thread sleeps until its time is over.
  await new Promise(setImmediate);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1.5 * WRITE_TIMEOUT_MS);
  expect(await published).toMatchObject({ receipts: [{ status: "published" }] });
});

it("notices a silent Redis within the time of a write, also where nothing is written", async () => {
  await using server = await startRedis();
  await using redis = await openTestRedis(server.url, { writeTimeoutMs: WRITE_TIMEOUT_MS, checkEveryMs: 50 });
  server.signal("SIGSTOP");
  await until(() => !redis.state().ready);
  // By the deadline of writes: the socket's own, which says that it is not connected, is longer.
  expect(redis.state().problems.join()).toContain("does not answer");
  server.signal("SIGCONT");
  await until(() => redis.state().ready);
});

describe("a server that answers questions and refuses writes", () => {
  type Refusal = {
    readonly code: string;
    readonly begin: (server: RedisServer) => Promise<unknown>;
    readonly end: (server: RedisServer) => Promise<unknown>;
  };
  const refusals: readonly Refusal[] = [
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
        // It cannot put a file where a folder stands.
        const [, dir = ""] = (await client.config("GET", "dir")) as string[];
        await mkdir(join(dir, "dump.rdb"));
        await client.config("SET", "save", "3600 1");
        await client.bgsave();
        await until(async () => (await client.info("persistence")).includes("rdb_last_bgsave_status:err"));
      },
      end: ({ client }) => client.config("SET", "stop-writes-on-bgsave-error", "no"),
    },
  ];

  it.each(refusals)("is a problem from the refusal ($code) until a write is taken", async ({
    code,
    begin,
    end,
  }) => {
    await using server = await startRedis();
    // So that nothing but the refusal itself can tell of it.
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

  it.each(refusals)("is noticed ($code), and its end, where nothing is written", async ({
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

  it("is a problem also where it takes writes that are not as durable as asked for", async () => {
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
    await expect(refused).rejects.toThrow("0 of 1 replicas");
    expect(redis.state().ready).toBe(false);
    replica.signal("SIGCONT");
    await until(() => redis.state().ready);
  });
});

it("a user who may run only scripts that are loaded publishes, and its Redis counts as ready", async () => {
  await using server = await startRedis();
  await server.client.call("acl", "setuser", "default", "-eval");
  await using redis = await openTestRedis(server.url, { checkEveryMs: 20 });
  const channel = testChannel();
  const publish = testPublish(redis);
  // What is asked at each look is refused.
  await until(async () =>
    /cmdstat_eval:.*rejected_calls=[3-9]/.test(await server.client.info("commandstats")),
  );
  await publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  expect(redis.state()).toMatchObject({ ready: true, problems: [] });
});
