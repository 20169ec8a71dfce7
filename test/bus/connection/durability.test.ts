import { expect, test } from "vitest";
import type { DurabilityLevel } from "../../../src/bus/connection/durability.ts";
import { RedisUnfitError } from "../../../src/bus/errors.ts";
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

const PROCESS = ["--appendonly", "yes", "--appendfsync", "everysec"];
const FSYNC = ["--appendonly", "yes", "--appendfsync", "always"];

test.each<[readonly string[], DurabilityLevel]>([
  [[], "none"],
  [PROCESS, "process"],
  [FSYNC, "fsync"],
])("Redis with options %j has the durability %s, and the gateway cannot connect if it requires more durability", async (options, held) => {
  await using server = await startRedis(options);
  const levels: DurabilityLevel[] = ["none", "process", "fsync", "replica"];
  for (const durability of levels) {
    const opening = openTestRedis(server.url, { durability });
    if (levels.indexOf(durability) <= levels.indexOf(held)) {
      await using redis = await opening;
      expect(redis.state()).toMatchObject({ ready: true, durability: held });
    } else {
      await expect(opening).rejects.toBeInstanceOf(RedisUnfitError);
      await expect(opening).rejects.toThrow(`INLET_DURABILITY=${held}`);
      if (held === "none") await expect(opening).rejects.toThrow("set `appendonly yes`");
    }
  }
});

async function withReplica(server: RedisServer): Promise<RedisServer> {
  const replica = await startRedis([
    "--replicaof",
    `127.0.0.1 ${server.port}`,
    "--repl-diskless-sync-delay",
    "0",
  ]);
  await until(async () => (await server.client.info("replication")).includes("state=online"));
  return replica;
}

test("publishing with replica durability fails while the replica does not respond, even if the event is a duplicate", async () => {
  await using server = await startRedis([...FSYNC, "--repl-diskless-sync-delay", "0"]);
  await using replica = await withReplica(server);
  await using redis = await openTestRedis(server.url, { durability: "replica" });
  expect(redis.state()).toMatchObject({ ready: true, durability: "replica" });
  const publish = testPublish(redis);
  const channel = testChannel();
  const event = testEvent(channel);
  for (const status of ["published", "duplicate"]) {
    const { receipts } = await publish({ channel, events: [event], policy: testPolicy }, now);
    expect(receipts[0]?.status).toBe(status);
    expect(await replica.client.xlen(event.topic)).toBe(1);
  }
  // A delivery without items writes no data, so there is no replica to wait for.
  expect((await publish({ channel, events: [], policy: testPolicy }, now)).receipts).toEqual([]);
  replica.signal("SIGSTOP");
  for (const id of [event, testEvent(channel)]) {
    const refused = publish({ channel, events: [id], policy: testPolicy }, now);
    await expect(refused).rejects.toBeInstanceOf(UnavailableError);
  }
  replica.signal("SIGCONT");
  await until(async () => {
    const results = await Promise.allSettled([
      publish({ channel, events: [event], policy: testPolicy }, now),
    ]);
    return results[0]?.status === "fulfilled";
  });
});

test("200 concurrent publishes with replica durability send fewer than 20 WAIT commands to Redis", async () => {
  await using server = await startRedis([...FSYNC, "--repl-diskless-sync-delay", "0"]);
  await using _ = await withReplica(server);
  await using redis = await openTestRedis(server.url, { durability: "replica" });
  const publish = testPublish(redis);
  const channel = testChannel();
  await Promise.all(
    Array.from({ length: 200 }, () =>
      publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now),
    ),
  );
  expect(await server.client.xlen(testTopic(channel))).toBe(200);
  const waits = Number(/cmdstat_wait:calls=(\d+)/.exec(await server.client.info("commandstats"))?.[1]);
  expect(waits).toBeLessThan(20);
});

test("publishing fails while appendfsync of Redis is weaker than the required durability, and succeeds once it is restored", async () => {
  await using server = await startRedis(FSYNC);
  await using redis = await openTestRedis(server.url, { durability: "fsync", checkEveryMs: 50 });
  const publish = testPublish(redis);
  const channel = testChannel();
  const batch = { channel, events: [testEvent(channel)], policy: testPolicy };
  await publish(batch, now);
  await server.client.config("SET", "appendfsync", "no");
  await until(() => !redis.state().ready);
  expect(redis.state()).toMatchObject({ durability: "process" });
  await expect(publish(batch, now)).rejects.toBeInstanceOf(UnavailableError);
  await server.client.config("SET", "appendfsync", "always");
  await until(() => redis.state().ready);
  await publish(batch, now);
});

test("connecting to Redis fails if CONFIG is forbidden, unless the operator asserts the durability of Redis", async () => {
  await using server = await startRedis(FSYNC);
  await server.client.call("acl", "setuser", "app", "on", ">pass", "~*", "+@all", "-config");
  const url = server.url.replace("redis://", "redis://app:pass@");
  await expect(openTestRedis(url, { durability: "fsync" })).rejects.toThrow(/INLET_DURABILITY_ASSERTED/);
  await using asserted = await openTestRedis(url, { durability: "fsync", durabilityAsserted: true });
  expect(asserted.state()).toMatchObject({ ready: true, durability: "unknown" });
  // INFO shows that the append-only file is enabled, which is enough for `process`.
  await using process = await openTestRedis(url, { durability: "process" });
  expect(process.state()).toMatchObject({ ready: true, durability: "process" });
});

test("connecting to Redis fails if its maxmemory-policy allows evicting keys", async () => {
  await using server = await startRedis(["--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"]);
  await expect(openTestRedis(server.url)).rejects.toThrow(/volatile-lru/);
});

test("connecting to an unreachable Redis keeps waiting until the caller aborts", async () => {
  await using server = await startRedis();
  const { port } = server;
  await server[Symbol.asyncDispose]();
  const opening = openTestRedis(`redis://127.0.0.1:${port}`, { signal: AbortSignal.timeout(300) });
  await expect(opening).rejects.toThrow(/abort/i);
});

test("the Redis client connects through a Unix socket with a password and a database number", async () => {
  await using server = await startRedis();
  // The client of the test server stays authenticated.
  await server.client.call("acl", "setuser", "default", "resetpass", ">p@ss");
  await using redis = await openTestRedis(`unix://:p%40ss@${server.socketPath}?db=3`);
  const channel = testChannel();
  await testPublish(redis)({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
  expect(await redis.call("xlen", [testTopic(channel)])).toBe(1);
  expect(await server.client.exists(testTopic(channel))).toBe(0);
  await server.client.select(3);
  expect(await server.client.exists(testTopic(channel))).toBe(1);
});
