import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import { now, testChannel, testEvent, testPolicy, testTopic } from "../support.ts";

/** Publishes `ids` ids to each topic and checks the memory per id. Needs exclusive use of the Redis server. */
export async function expectBytesPerId(options: {
  readonly publish: Publish;
  readonly client: Redis;
  readonly topics: number;
  readonly ids: number;
  readonly most: number;
}): Promise<void> {
  const { publish, client, ids, most } = options;
  const channel = testChannel();
  const types = Array.from({ length: options.topics }, (_, i) => `pull_request.opened${i}`);
  for (const type of types) {
    for (let i = 0; i < ids; i += 500) {
      const count = Math.min(500, ids - i);
      const events = Array.from({ length: count }, () => testEvent(channel, undefined, { type }));
      await publish({ channel, events, policy: testPolicy }, now);
    }
  }
  const topics = types.map((type) => testTopic(channel, type));
  const bytes = await dedupeBytes(client, topics);
  expect(bytes / (topics.length * ids)).toBeLessThanOrEqual(most);
  // Guards against a measurement that found no keys.
  expect(bytes / (topics.length * ids)).toBeGreaterThan(30);
}

/** Returns the memory that deleting the dedupe keys of the topics frees. */
async function dedupeBytes(client: Redis, topics: readonly string[]): Promise<number> {
  const script = `
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
  const usedMemory = async () => Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]);
  await client.eval(script, 0);
  const before = await usedMemory();
  await client.eval(script, 0, ...topics);
  return before - (await usedMemory());
}
