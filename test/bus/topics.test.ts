import { afterAll, beforeAll, expect, test } from "vitest";
import { deadLettersKey } from "../../src/bus/keys.ts";
import type { RedisBus } from "../../src/bus/redis.ts";
import { createSourcePositions } from "../../src/bus/source-positions.ts";
import { createTopics, type Topics } from "../../src/bus/topics.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish, testTopic } from "./support.ts";

let server: RedisServer;
let redis: RedisBus;
let topics: Topics;
beforeAll(async () => {
  server = await startRedis();
  redis = await openTestRedis(server.url);
  topics = createTopics({ redis });
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

test("a topic tells its length, ends, size and groups", async () => {
  const channel = testChannel();
  const topic = testTopic(channel);
  expect(await topics.find(topic)).toBeUndefined();
  const events = Array.from({ length: 20 }, () => testEvent(channel));
  await testPublish(redis)({ channel, events, policy: testPolicy }, now);
  await server.client.xgroup("CREATE", topic, "sub_1", "0");
  const entries = await topics.listEntries(topic, { from: "-", to: "+", limit: 50 });
  expect(entries.map(({ fields }) => fields.id)).toEqual(events.map(({ id }) => id));
  const info = await topics.find(topic);
  expect(info).toMatchObject({
    length: 20,
    firstEntryId: entries[0]?.entryId,
    lastEntryId: entries[19]?.entryId,
    groups: [{ name: "sub_1", lag: 20 }],
  });
  expect(info?.bytes).toBeGreaterThan(20 * 60);
});

test("entries are found by range, by id, and deleted one by one", async () => {
  const topic = testTopic(testChannel());
  for (let i = 1; i <= 5; i++) await server.client.xadd(topic, `${i}-0`, "id", `e${i}`);
  const ids = async (range: Parameters<Topics["listEntries"]>[1]) =>
    (await topics.listEntries(topic, range)).map(({ entryId }) => entryId);
  expect(await ids({ from: "2", to: "4", limit: 2 })).toEqual(["2-0", "3-0"]);
  expect(await ids({ from: "(2-0", to: "+", limit: 9, newestFirst: true })).toEqual(["5-0", "4-0", "3-0"]);
  expect(await topics.findEntry(topic, "3-0")).toEqual({ entryId: "3-0", fields: { id: "e3" } });
  expect(await topics.deleteEntry(topic, "3-0")).toBe(true);
  expect(await topics.deleteEntry(topic, "3-0")).toBe(false);
  expect(await topics.findEntry(topic, "3-0")).toBeUndefined();
  for (const id of ["", "-", "+", "3", "x-y"]) expect(await topics.findEntry(topic, id)).toBeUndefined();
});

test("a deleted topic leaves no companion behind", async () => {
  const channel = testChannel();
  const publish = testPublish(redis);
  const topic = testTopic(channel);
  const positions = createSourcePositions({ redis });
  const taken = await positions.takeOver({ number: channel.number, topics: [topic] });
  if (taken.kind !== "taken") throw new Error("nobody else has it");
  const { epoch } = taken;
  for (const dedupeWindowMs of [86_400_000, 3_600_000]) {
    const events = Array.from({ length: 30_000 }, () => testEvent(channel));
    const policy = { ...testPolicy, dedupeWindowMs };
    await publish(
      { channel, events, policy, position: { epoch, version: dedupeWindowMs < 5e6 ? 1 : 0, value: "" } },
      now,
    );
  }
  await server.client.xgroup("CREATE", topic, "sub_1", "0");
  await server.client.xadd(deadLettersKey(topic, "sub_1"), "*", "reason", "it failed");
  expect((await server.client.keys(`*${topic}*`)).length).toBeGreaterThan(900);
  await topics.delete(topic);
  expect(await server.client.keys(`*${topic}*`)).toEqual([]);
});
