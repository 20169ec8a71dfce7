import { describe, expect, test } from "vitest";
import { createSourcePositions } from "../../../src/bus/sources/source-positions.ts";
import { createTopics } from "../../../src/bus/topics/topics.ts";
import { deadLettersKey } from "../../../src/event/subscription-keys.ts";
import { listEntries } from "../../support/entries.ts";
import { opened } from "../../support/opened.ts";
import { now, openedBus, testChannel, testEvent, testPolicy, testPublish, testTopic } from "../support.ts";

const { server, redis } = openedBus();
const topics = opened(() => createTopics({ redis }));

test("the status of a topic contains its length, first and last entry, size and consumer groups", async () => {
  const channel = testChannel();
  const topic = testTopic(channel);
  expect(await topics.find(topic)).toBeUndefined();
  const events = Array.from({ length: 20 }, () => testEvent(channel));
  await testPublish(redis)({ channel, events, policy: testPolicy }, now);
  await server.client.xgroup("CREATE", topic, "sub_1", "0");
  const entries = await listEntries(redis, topic);
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

test("entries of a topic can be found and deleted one by one", async () => {
  const topic = testTopic(testChannel());
  for (let i = 1; i <= 5; i++) await server.client.xadd(topic, `${i}-0`, "id", `e${i}`);
  expect(await topics.findEntry(topic, "3-0")).toEqual({ entryId: "3-0", fields: { id: "e3" } });
  expect(await topics.deleteEntry(topic, "3-0")).toBe(true);
  expect(await topics.deleteEntry(topic, "3-0")).toBe(false);
  expect(await topics.findEntry(topic, "3-0")).toBeUndefined();
  for (const id of ["", "-", "+", "3", "x-y"]) expect(await topics.findEntry(topic, id)).toBeUndefined();
});

describe("deleting a topic", () => {
  test("deletes the stream and all related Redis keys", async () => {
    const channel = testChannel();
    const publish = testPublish(redis);
    const topic = testTopic(channel);
    const positions = createSourcePositions({ redis });
    const taken = await positions.takeOver({ number: channel.number, topics: [topic] });
    if (taken.kind !== "acquired") throw new Error("the source is not free");
    const { epoch } = taken;
    for (const [version, dedupeWindowMs] of [86_400_000, 3_600_000].entries()) {
      const events = Array.from({ length: 400 }, () => testEvent(channel));
      const policy = { ...testPolicy, dedupeWindowMs };
      const position = { source: channel.number, epoch, version, value: "" };
      await publish({ channel, events, policy, position }, now);
    }
    await server.client.xgroup("CREATE", topic, "sub_1", "0");
    await server.client.xadd(deadLettersKey(topic, "sub_1"), "*", "reason", "it failed");
    expect((await server.client.keys(`*${topic}*`)).length).toBeGreaterThan(10);
    await topics.delete(topic);
    expect(await server.client.keys(`*${topic}*`)).toEqual([]);
  });

  test("uses several Redis calls if the topic has too many deduplication keys for one call", async () => {
    const channel = testChannel();
    const topic = testTopic(channel);
    await testPublish(redis)({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
    const [slice = ""] = (await server.client.keys(`{${topic}}:*`)).filter((key) => /:\d$/.test(key));
    // The number of buckets that 80,000 ids need (dedupe.lua).
    const buckets = Array.from({ length: 1_200 }, (_, i) => `${slice}.${(i + 1).toString(16)}`);
    await server.client.mset(Object.fromEntries(buckets.map((key) => [key, ""])));
    await server.client.hset(slice, "n", buckets.length + 1);
    await topics.delete(topic);
    expect(await server.client.keys(`*${topic}*`)).toEqual([]);
  });

  test("leaves a topic with entries unchanged if only empty topics may be deleted", async () => {
    const channel = testChannel();
    const topic = testTopic(channel);
    await testPublish(redis)({ channel, events: [testEvent(channel)], policy: testPolicy }, now);
    await server.client.xgroup("CREATE", topic, "sub_1", "0");
    const keys = async () => (await server.client.keys(`*${topic}*`)).sort();
    const before = await keys();
    expect(await topics.deleteEmpty(topic)).toBe(false);
    expect(await keys()).toEqual(before);
    await server.client.xtrim(topic, "MAXLEN", 0);
    expect(await topics.deleteEmpty(topic)).toBe(true);
    expect(await keys()).toEqual([]);
    expect(await topics.deleteEmpty(topic)).toBe(true);
  });
});
