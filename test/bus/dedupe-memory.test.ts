import { afterAll, beforeAll, expect, test } from "vitest";
import type { Publish } from "../../src/bus/publish.ts";
import type { RedisBus } from "../../src/bus/redis.ts";
import type { ChannelIdentity } from "../../src/event/channel.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish, testTopic } from "./support.ts";

let server: RedisServer;
let redis: RedisBus;
let publish: Publish;
beforeAll(async () => {
  server = await startRedis();
  redis = await openTestRedis(server.url);
  publish = testPublish(redis);
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const usedMemory = async (): Promise<number> => {
  const info = await server.client.info("memory");
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
};

/** What the dedupe keys of topics take: as much as Redis has less once they are gone. */
async function dedupeBytes(topics: readonly string[]): Promise<number> {
  const script = `
    local taken = 0
    for _, topic in ipairs(ARGV) do
      for slice = 0, 7 do
        local base = '{' .. topic .. '}:' .. slice
        local count = tonumber(redis.call('HGET', base, 'n') or 1)
        for bucket = 1, count - 1 do
          redis.call('DEL', base .. '.' .. string.format('%x', bucket))
        end
        redis.call('DEL', base)
      end
    end
    collectgarbage()`;
  await server.client.eval(script, 0);
  const before = await usedMemory();
  await server.client.eval(script, 0, ...topics);
  return before - (await usedMemory());
}

async function publishMany(channel: ChannelIdentity, count: number, type: string): Promise<void> {
  for (let i = 0; i < count; i += 500) {
    const events = Array.from({ length: Math.min(500, count - i) }, () =>
      testEvent(channel, undefined, { type }),
    );
    await publish({ channel, events, policy: testPolicy }, now);
  }
}

test("a remembered id takes at most 60 bytes where buckets hold 64 or more", async () => {
  const channel = testChannel();
  for (const [topics, ids] of [
    [100, 64],
    [100, 85],
    [1, 11_000],
    [1, 60_000],
    [1, 87_000],
  ] as const) {
    const types = Array.from({ length: topics }, (_, i) => `pull_request_${ids}_${i}`);
    for (const type of types) await publishMany(channel, ids, type);
    const names = types.map((type) => testTopic(channel, type));
    const buckets = (await server.client.keys(`{${names[0]}}:*`)).length;
    const perId = (await dedupeBytes(names)) / (topics * ids);
    console.log(`${ids} ids, ${(ids / buckets).toFixed(0)} a bucket: ${perId.toFixed(1)} B an id`);
    expect(perId).toBeLessThanOrEqual(60);
  }
});

test("a remembered id takes at most 300 bytes on topics that hear of one a slice", async () => {
  const channel = testChannel();
  const types = Array.from({ length: 4000 }, (_, i) => `pull_request.opened${i}`);
  for (const type of types)
    await publish({ channel, events: [testEvent(channel, undefined, { type })], policy: testPolicy }, now);
  const topics = types.map((type) => testTopic(channel, type));
  const perId = (await dedupeBytes(topics)) / topics.length;
  console.log(`a topic name of ${topics[0]?.length} characters, 1 id: ${perId.toFixed(1)} B`);
  expect(perId).toBeLessThanOrEqual(300);
});
