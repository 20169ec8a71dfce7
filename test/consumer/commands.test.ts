import { expect, test } from "vitest";
import { createGroups } from "../../src/bus/groups/groups.ts";
import { computeSlot } from "../../src/bus/keys.ts";
import { createCommands } from "../../src/consumer/commands.ts";
import { chunkTopics } from "../../src/lib/stream-chunks.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish } from "../bus/support.ts";
import { createTestRedis } from "../support/test-redis.ts";

test("one XREADGROUP command reads at most 64 streams, and in a Redis Cluster only streams of one slot", () => {
  const topics = Array.from({ length: 500 }, (_, i) => `events.${i}`);
  const chunks = chunkTopics(topics, false);
  expect(chunks.flat()).toEqual(topics);
  expect(Math.max(...chunks.map(({ length }) => length))).toBe(64);
  const slotted = chunkTopics([...topics, ...topics.map((topic) => `${topic}{same}`)], true);
  expect(new Set(slotted.flat()).size).toBe(1000);
  for (const chunk of slotted) expect(new Set(chunk.map(computeSlot)).size).toBe(1);
  expect(slotted.filter(({ length }) => length > 1).flat()).not.toHaveLength(0);
});

test("reading 100 topics with several commands returns each entry once", async () => {
  await using server = await createTestRedis();
  await using redis = await openTestRedis(server.url);
  const channel = testChannel();
  const events = Array.from({ length: 200 }, (_, i) => testEvent(channel, `e${i}`, { type: `t${i % 100}` }));
  await testPublish(redis)({ channel, events, policy: testPolicy }, now);
  const topics = [...new Set(events.map(({ topic }) => topic))];
  const groups = createGroups({ redis });
  await Promise.all(topics.map((topic) => groups.ensure(topic, "g", "0-0")));
  const commands = createCommands(redis, { subscription: "g", name: "c", maxDeadLetters: 1 });
  const read = async () => {
    const ids: (string | undefined)[] = [];
    for (const chunk of chunkTopics(topics, false)) {
      const entries = await commands.read(chunk, { count: 10 });
      ids.push(...entries.map(({ fields }) => fields[fields.indexOf("id") + 1]));
    }
    return ids.sort();
  };
  expect(await read()).toEqual(events.map(({ id }) => id).sort());
  expect(await read()).toEqual([]);
});

test("extending the claims of a reader returns the ids of entries that another reader has claimed, and does not take these entries back", async () => {
  await using server = await createTestRedis();
  await using redis = await openTestRedis(server.url);
  const channel = testChannel();
  const events = ["kept", "claimed", "acknowledged"].map((id) => testEvent(channel, id));
  await testPublish(redis)({ channel, events, policy: testPolicy }, now);
  const [{ topic } = { topic: "" }] = events;
  await createGroups({ redis }).ensure(topic, "g", "0-0");
  const open = (name: string) => createCommands(redis, { subscription: "g", name, maxDeadLetters: 1 });
  const [slow, other] = [open("slow"), open("other")];
  const ids = (await slow.read([topic], { count: 3 })).map(({ entryId }) => entryId);
  const [kept = "", claimed = "", acknowledged = ""] = ids;
  await other.claimIdle(topic, { idleMs: 0, from: claimed, count: 1 });
  await other.acknowledge(topic, [acknowledged]);
  expect(await slow.extendClaims(topic, ids)).toEqual([claimed, acknowledged]);
  expect(await slow.countAttempt({ topic, entryId: claimed }, 2)).toBe(false);
  const pending = (await server.client.xpending(topic, "g", "-", "+", 10)) as [string, string][];
  expect(pending.map(([id, reader]) => [id, reader])).toEqual([
    [kept, "slow"],
    [claimed, "other"],
  ]);
});
