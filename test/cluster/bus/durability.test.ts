import { expect, test } from "vitest";
import { createGroups } from "../../../src/bus/groups/groups.ts";
import type { PublishResult } from "../../../src/bus/publish/publish-batch.ts";
import { createCommands } from "../../../src/consumer/commands.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { chunkTopics } from "../../../src/lib/stream-chunks.ts";
import {
  LONG_WRITE_TIMEOUT,
  now,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
} from "../../bus/support.ts";
import { type RedisCluster, type RedisServer, startRedis, startRedisCluster } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const FSYNC = ["--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync-delay", "0"];

/** Adds a replica to each master. */
async function replicate(
  { masters }: RedisCluster,
  stack: AsyncDisposableStack,
): Promise<readonly RedisServer[]> {
  const replicas = await Promise.all(
    masters.map(async (master) => {
      const options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", ...FSYNC];
      const replica = stack.use(await startRedis(options));
      await replica.client.call("cluster", "meet", "127.0.0.1", master.port);
      const masterId = String(await master.client.call("cluster", "myid"));
      const replicated = () =>
        replica.client.call("cluster", "replicate", masterId).then(
          () => true,
          () => false,
        );
      await until(replicated, { everyMs: 50 });
      const isOnline = async () => (await master.client.info("replication")).includes("state=online");
      await until(isOnline, { everyMs: 50 });
      return replica;
    }),
  );
  // Waits until all nodes know each other: a replica unknown to the other masters gets no votes in a failover.
  for (const { client } of [...masters, ...replicas]) {
    const known = async () => String(await client.call("cluster", "info")).includes("cluster_known_nodes:6");
    await until(known, { everyMs: 50 });
  }
  return replicas;
}

test("the durability of a Redis Cluster is reported as the durability of its least durable master", async () => {
  await using cluster = await startRedisCluster(FSYNC);
  await using redis = await openTestRedis(cluster.url, { durability: "fsync", checkEveryMs: 100 });
  expect(redis.state()).toMatchObject({ ready: true, durability: "fsync" });
  await cluster.masters[1]?.client.config("SET", "appendfsync", "everysec");
  await until(() => redis.state().durability === "process");
  expect(redis.state().ready).toBe(false);
});

test("publishing to a Redis Cluster with replica durability fails while the replicas do not respond", async () => {
  await using cluster = await startRedisCluster(FSYNC);
  await using replicas = new AsyncDisposableStack();
  const masterReplicas = await replicate(cluster, replicas);
  await using redis = await openTestRedis(cluster.url, { durability: "replica" });
  expect(redis.state()).toMatchObject({ ready: true, durability: "replica" });
  const publish = testPublish(redis);
  const channel = testChannel();
  const events = Array.from({ length: 60 }, (_, i) => testEvent(channel, `e${i}`, { type: `t${i}` }));
  for (const status of ["published", "duplicate"]) {
    const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
    expect(new Set(receipts.map((receipt) => receipt.status))).toEqual(new Set([status]));
  }
  for (const replica of masterReplicas) replica.signal("SIGSTOP");
  await expect(publish({ channel, events, policy: testPolicy }, now)).rejects.toBeInstanceOf(
    UnavailableError,
  );
  for (const replica of masterReplicas) replica.signal("SIGCONT");
});

test("after a failover of a Redis Cluster, publishing recovers automatically and replicated events are still there", async () => {
  await using cluster = await startRedisCluster([...FSYNC, "--cluster-node-timeout", "2000"]);
  await using replicas = new AsyncDisposableStack();
  await replicate(cluster, replicas);
  await using redis = await openTestRedis(cluster.url, { durability: "fsync" });
  const publish = testPublish(redis);
  const channel = testChannel();
  const events = Array.from({ length: 60 }, (_, i) => testEvent(channel, `e${i}`, { type: `t${i}` }));
  const batch = { channel, events, policy: testPolicy };
  const first = await publish(batch, now);
  await until(
    async () => {
      for (const { client } of cluster.masters) {
        const replication = await client.info("replication");
        const [, offset] = /master_repl_offset:(\d+)/.exec(replication) ?? [];
        if (!replication.includes(`offset=${offset},`)) return false;
      }
      return true;
    },
    { everyMs: 20 },
  );
  cluster.masters[0]?.signal("SIGKILL");
  let again: PublishResult | undefined;
  await until(
    async () => {
      again = await publish(batch, now).catch(() => undefined);
      return again !== undefined;
    },
    { everyMs: 50 },
  );
  expect(again?.receipts).toEqual(first.receipts.map((receipt) => ({ ...receipt, status: "duplicate" })));
  await until(() => redis.state().ready);
});

test("a consumer group reads its topics on all masters of a Redis Cluster", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openTestRedis(cluster.url, LONG_WRITE_TIMEOUT);
  const channel = testChannel();
  const events = Array.from({ length: 60 }, (_, i) => testEvent(channel, `e${i}`, { type: `t${i}` }));
  await testPublish(redis)({ channel, events, policy: testPolicy }, now);
  const topics = events.map(({ topic }) => topic);
  const groups = createGroups({ redis });
  await Promise.all(topics.map((topic) => groups.ensure(topic, "g", "0-0")));
  await groups.setTopics("g", topics);
  const { read: readNew } = createCommands(redis, { subscription: "g", name: "c", maxDeadLetters: 1 });
  let read = 0;
  for (const chunk of chunkTopics(topics, redis.isCluster)) {
    read += (await readNew(chunk, { count: 10 })).length;
  }
  expect(read).toBe(60);
});
