import calculateSlot from "cluster-key-slot";
import { describe, expect, test } from "vitest";
import { cursorKey } from "../../../src/bus/keys.ts";
import { createQuarantineStore } from "../../../src/bus/quarantine/quarantine.ts";
import { createTopics } from "../../../src/bus/topics/topics.ts";
import type { ChannelIdentity } from "../../../src/event/channel.ts";
import type { VerifiedDelivery } from "../../../src/event/received.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import {
  LONG_WRITE_TIMEOUT,
  now,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
  testTopic,
} from "../../bus/support.ts";
import { opened } from "../../support/opened.ts";
import { startRedisCluster } from "../../support/redis.ts";
import { until } from "../../support/until.ts";

const cluster = opened(startRedisCluster);
const redis = opened(() => openTestRedis(cluster.url, LONG_WRITE_TIMEOUT));
const publish = opened(() => testPublish(redis));
const topics = opened(() => createTopics({ redis }));
const quarantine = opened(() => createQuarantineStore({ redis, publish }));

const lengthOf = async (topic: string) => (await topics.find(topic))?.length ?? 0;
const delivery: VerifiedDelivery = {
  method: "POST",
  headers: {},
  query: {},
  body: Buffer.from("x"),
  arrivedAtMs: 1,
};
const item = {
  failure: { item: 0, reason: "id_missing", detail: "none", definitions: [] },
  keep: "all",
} as const;

/** Creates events of one channel over many topics, and so over all masters. */
const spread = (channel: ChannelIdentity, count: number, prefix = "e") =>
  Array.from({ length: count }, (_, i) => testEvent(channel, `${prefix}${i}`, { type: `t${i % 40}` }));

test("the Redis client detects automatically that the server is a Cluster", () => {
  expect(redis.state()).toMatchObject({ ready: true, cluster: true, problems: [] });
  expect(redis.writes.connections()).toHaveLength(3);
});

test("a retried delivery publishes its missing events, but a replay of its signed bytes with other event ids publishes nothing", async () => {
  const channel = testChannel();
  const mark = (digest: string) => ({
    identity: "signed bytes".padEnd(22, "-"),
    digest: digest.padEnd(11, "-"),
  });
  const send = async (events: ReturnType<typeof spread>, digest: string) => {
    const { receipts } = await publish({ channel, events, policy: testPolicy, signed: mark(digest) }, now);
    return [...new Set(receipts.map(({ status }) => status))];
  };
  const events = spread(channel, 40);
  expect(await send(events.slice(0, 20), "1")).toEqual(["published"]);
  expect(await send(events, "1")).toEqual(["duplicate", "published"]);
  expect(await send(spread(channel, 40, "other"), "2")).toEqual(["replayed"]);
});

test("a delivery whose topics are on all Cluster masters is published once per event, with receipts in order", async () => {
  const channel = testChannel();
  const events = spread(channel, 200);
  const first = await publish({ channel, events, policy: testPolicy }, now);
  expect(first.receipts.every(({ status }) => status === "published")).toBe(true);
  for (const [i, event] of events.entries()) {
    const receipt = first.receipts[i];
    const entry =
      receipt && "entryId" in receipt ? await topics.findEntry(event.topic, receipt.entryId) : undefined;
    expect(entry?.fields.id).toBe(event.id);
  }
  const second = await publish({ channel, events, policy: testPolicy }, now);
  expect(second.receipts).toEqual(first.receipts.map((receipt) => ({ ...receipt, status: "duplicate" })));
  expect(await lengthOf(testTopic(channel, "t7"))).toBe(5);
});

test("two gateways that publish the same event to a Cluster 50 times concurrently create one entry", async () => {
  await using other = await openTestRedis(cluster.url, LONG_WRITE_TIMEOUT);
  const publishers = [publish, testPublish(other)];
  const channel = testChannel();
  const events = spread(channel, 12);
  await Promise.all(
    Array.from({ length: 50 }, (_, i) => publishers[i % 2]?.({ channel, events, policy: testPolicy }, now)),
  );
  for (const { topic } of events) expect(await lengthOf(topic)).toBe(1);
});

describe("a delivery of a pull source in a Redis Cluster", () => {
  test("moves the cursor after its events are written, and is rejected if its epoch or cursor version is stale", async () => {
    const channel = testChannel();
    await redis.call("hset", [cursorKey(channel.number), "e", 2]);
    const batch = (prefix: string, epoch: number, version: number) => ({
      channel,
      events: spread(channel, 30, prefix),
      policy: testPolicy,
      position: { source: channel.number, epoch, version, value: prefix },
    });
    await publish(batch("a", 2, 0), now);
    expect(await redis.call("hmget", [cursorKey(channel.number), "c", "v"])).toEqual(["a", "1"]);
    await expect(publish(batch("b", 1, 1), now)).rejects.toMatchObject({ stale: "epoch" });
    expect(await lengthOf(testTopic(channel, "t3"))).toBe(1);
    await expect(publish(batch("c", 2, 0), now)).rejects.toMatchObject({ stale: "cursor" });
    expect(await redis.call("hmget", [cursorKey(channel.number), "c", "v"])).toEqual(["a", "1"]);
  });
});

test("publishing to a Redis Cluster stores quarantined items of a delivery, and deletes items that a delivery releases", async () => {
  const channel = testChannel();
  const { quarantineIds } = await publish(
    { channel, events: spread(channel, 10), policy: testPolicy, quarantine: { delivery, items: [item] } },
    now,
  );
  const [id = ""] = quarantineIds;
  expect((await quarantine.find(channel.organizationId, id))?.delivery.body).toEqual(delivery.body);
  await publish({ channel, events: spread(channel, 10, "f"), policy: testPolicy, release: [id] }, now);
  expect(await quarantine.find(channel.organizationId, id)).toBeUndefined();
});

test("deleting a topic in a Redis Cluster deletes all related keys", async () => {
  const channel = testChannel();
  await publish({ channel, events: spread(channel, 2000), policy: testPolicy }, now);
  const topic = testTopic(channel, "t5");
  await topics.delete(topic);
  for (const { client } of cluster.masters) expect(await client.keys(`*${topic}}:*`)).toEqual([]);
  expect(await lengthOf(topic)).toBe(0);
});

test("publishing recognizes duplicates in a Cluster slot during and after its migration to another master", async () => {
  const channel = testChannel();
  const event = testEvent(channel, "first");
  await publish({ channel, events: [event], policy: testPolicy }, now);
  const slot = calculateSlot(event.topic);
  const owner = cluster.masters[Math.floor((slot * 3) / 16_384)] ?? cluster.masters[0];
  const target = cluster.masters.find((master) => master !== owner);
  if (owner === undefined || target === undefined) throw new Error("the Cluster has no two masters");
  const ownerId = String(await owner.client.call("cluster", "myid"));
  const targetId = String(await target.client.call("cluster", "myid"));
  await target.client.call("cluster", "setslot", slot, "importing", ownerId);
  await owner.client.call("cluster", "setslot", slot, "migrating", targetId);
  for (;;) {
    const keys = (await owner.client.call("cluster", "getkeysinslot", slot, 100)) as string[];
    if (keys.length === 0) break;
    await owner.client.call("migrate", "127.0.0.1", target.port, "", 0, 5000, "keys", ...keys);
  }
  const moving = await publish(
    { channel, events: [event, testEvent(channel, "second")], policy: testPolicy },
    now,
  );
  expect(moving.receipts.map(({ status }) => status)).toEqual(["duplicate", "published"]);
  for (const { client } of cluster.masters) await client.call("cluster", "setslot", slot, "node", targetId);
  const moved = await publish(
    { channel, events: [event, testEvent(channel, "third")], policy: testPolicy },
    now,
  );
  expect(moved.receipts.map(({ status }) => status)).toEqual(["duplicate", "published"]);
  expect(await lengthOf(event.topic)).toBe(3);
});

test("publishing to a Redis Cluster fails while a master does not respond, and succeeds once the master continues", async () => {
  await using impatient = await openTestRedis(cluster.url, { checkEveryMs: 500 });
  const publish = testPublish(impatient);
  const channel = testChannel();
  const [stopped] = cluster.masters;
  stopped?.signal("SIGSTOP");
  await expect(
    publish({ channel, events: spread(channel, 40), policy: testPolicy }, now),
  ).rejects.toBeInstanceOf(UnavailableError);
  await until(() => !impatient.state().ready);
  stopped?.signal("SIGCONT");
  await until(
    async () => {
      const result = await publish({ channel, events: spread(channel, 40), policy: testPolicy }, now).catch(
        () => undefined,
      );
      return result !== undefined;
    },
    { everyMs: 50 },
  );
  for (let i = 0; i < 40; i++) expect(await lengthOf(testTopic(channel, `t${i}`))).toBe(1);
});
