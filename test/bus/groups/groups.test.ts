import { expect, test } from "vitest";
import { idBefore } from "../../../src/bus/entry-id.ts";
import { createGroups, readRedisTimeMs } from "../../../src/bus/groups/groups.ts";
import {
  deadLettersKey,
  knownSubscriptionKey,
  subscriptionKey,
} from "../../../src/event/subscription-keys.ts";
import { opened } from "../../support/opened.ts";
import { now, openedBus, testChannel, testEvent, testPolicy, testPublish, testTopic } from "../support.ts";

const { server, redis } = openedBus();
const groups = opened(() => createGroups({ redis }));

const read = async (topic: string, group: string): Promise<readonly string[]> => {
  const reply = await server.client.xreadgroup("GROUP", group, "c", "COUNT", 100, "STREAMS", topic, ">");
  const [stream] = (reply ?? []) as [string, [string, string[]][]][];
  return (stream?.[1] ?? []).map(([id]) => id);
};

test("a consumer group receives every entry from its start time on, even entries published before the group was created", async () => {
  const channel = testChannel();
  const topic = testTopic(channel);
  const publish = testPublish(redis);
  const events = Array.from({ length: 3 }, () => testEvent(channel));
  const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
  const [first] = receipts.flatMap((receipt) => ("entryId" in receipt ? [receipt.entryId] : []));
  const startMs = Number(first?.split("-")[0]);
  expect(await groups.ensure(topic, "sub_1", idBefore(startMs))).toBe(true);
  expect(await groups.ensure(topic, "sub_1", idBefore(startMs + 10_000))).toBe(false);
  expect(await read(topic, "sub_1")).toHaveLength(3);
  await groups.ensure(topic, "sub_2", idBefore(0));
  expect(await read(topic, "sub_2")).toHaveLength(3);
  await groups.ensure(topic, "sub_3", idBefore((await readRedisTimeMs(redis)) + 1));
  expect(await read(topic, "sub_3")).toHaveLength(0);
});

test("removing the last consumer group of a stream deletes the stream only if the stream never held an entry", async () => {
  const [unused, used] = [testTopic(testChannel()), testTopic(testChannel())];
  for (const topic of [unused, used]) {
    await groups.ensure(topic, "sub_1", "0-0");
    await groups.ensure(topic, "sub_2", "0-0");
  }
  const entryId = await server.client.xadd(used, "*", "a", "b");
  await server.client.xdel(used, entryId ?? "");
  const countStreams = () => server.client.exists(unused, used);
  for (const topic of [unused, used]) await groups.remove(topic, "sub_1");
  expect(await countStreams()).toBe(2);
  for (const topic of [unused, used]) await groups.remove(topic, "sub_2");
  expect(await countStreams()).toBe(1);
  expect(await server.client.exists(used)).toBe(1);
});

test("a consumer group can be created before its stream exists, and can then be found, reset and removed", async () => {
  const topic = testTopic(testChannel());
  expect(await groups.list(topic)).toEqual([]);
  await groups.ensure(topic, "sub_1", "0-0");
  await server.client.xadd(topic, "1-1", "a", "b");
  await server.client.xadd(topic, "1-2", "a", "b");
  await server.client.xreadgroup("GROUP", "sub_1", "c", "COUNT", 1, "STREAMS", topic, ">");
  expect(await groups.find(topic, "sub_1")).toEqual({
    name: "sub_1",
    consumers: 1,
    pending: 1,
    lastDeliveredId: "1-1",
    lag: 1,
  });
  expect(await groups.reset(topic, "sub_1", "0-0")).toBe(1);
  expect(await read(topic, "sub_1")).toEqual(["1-1", "1-2"]);
  await server.client.xadd(deadLettersKey(topic, "sub_1"), "*", "reason", "it failed");
  expect(await groups.remove(topic, "sub_1")).toBe(true);
  expect(await server.client.exists(deadLettersKey(topic, "sub_1"))).toBe(0);
  expect(await groups.remove(topic, "sub_1")).toBe(false);
  expect(await groups.remove("events.none", "sub_1")).toBe(false);
});

test("setting the topics of a subscription replaces its earlier topics", async () => {
  await groups.setTopics("sub_9", ["a", "b"]);
  const many = Array.from({ length: 2500 }, (_, i) => `events.${i}`);
  await groups.setTopics("sub_9", many);
  expect(new Set(await server.client.smembers(subscriptionKey("sub_9")))).toEqual(new Set(many));
  await groups.removeTopics("sub_9");
  expect(await server.client.exists(subscriptionKey("sub_9"))).toBe(0);
});

test("a subscription without topics is stored as existing until the subscription is removed", async () => {
  await groups.setTopics("sub_10", []);
  expect(await server.client.exists(knownSubscriptionKey("sub_10"))).toBe(1);
  await groups.removeTopics("sub_10");
  expect(await server.client.keys("inlet:sub:sub_10*")).toEqual([]);
});
