import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import { now, testChannel, testEvent, testPolicy, testTopic } from "../support.ts";

/** Bytes that Redis takes for the expiry time of a key: an entry of a hash table, with one or two pointers to it. */
const EXPIRY_BYTES = 40;

/** Publishes `ids` ids to each topic and checks the memory per id. */
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

/**
 * Returns the memory of the dedupe keys of the topics. Adds an entry in the table of expiry times for each key, which `MEMORY USAGE` leaves
 * out.
 *
 * The total memory of the server is not used, because Redis also frees buffers of its clients in the background.
 */
async function dedupeBytes(client: Redis, topics: readonly string[]): Promise<number> {
  const script = `
    local bytes = 0
    local function add(key)
      local used = redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0)
      if used then
        bytes = bytes + used + ${EXPIRY_BYTES}
      end
    end
    for _, topic in ipairs(ARGV) do
      for slice = 0, 7 do
        local base = '{' .. topic .. '}:' .. slice
        local count = tonumber(redis.call('HGET', base, 'n') or 1)
        for bucket = 1, count - 1 do
          add(base .. '.' .. string.format('%x', bucket))
        end
        add(base)
      end
    end
    return bytes`;
  return (await client.eval(script, 0, ...topics)) as number;
}
