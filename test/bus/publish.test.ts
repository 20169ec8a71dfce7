import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Publish, Receipt } from "../../src/bus/publish.ts";
import type { RedisBus } from "../../src/bus/redis.ts";
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

const entryIds = (receipts: readonly Receipt[]) =>
  receipts.map((receipt) => (receipt.status === "conflict" ? "conflict" : receipt.entryId));

describe("an entry", () => {
  test("stands on its topic, field by field in order", async () => {
    const channel = testChannel();
    const event = testEvent(channel, "a", { data: '{"text":"ü 😀 \\u0000","n":12345678901234567890}' });
    const { receipts } = await publish({ channel, events: [event], policy: testPolicy }, now);
    expect(await server.client.xrange(event.topic, "-", "+")).toEqual([
      [entryIds(receipts)[0], event.fields],
    ]);
  });

  test("keeps fields other than the usual ones", async () => {
    const channel = testChannel();
    const usual = testEvent(channel, "a");
    const event = { ...usual, fields: [...usual.fields.slice(0, 12), "traceparent", "00-x", "ext", "ü"] };
    await publish({ channel, events: [event], policy: testPolicy }, now);
    expect((await server.client.xrange(event.topic, "-", "+"))[0]?.[1]).toEqual(event.fields);
  });
});

describe("a known id", () => {
  test("answers with the first entry's id", async () => {
    const channel = testChannel();
    const batch = { channel, events: [testEvent(channel, "a")], policy: testPolicy };
    const first = await publish(batch, now);
    const second = await publish(batch, now);
    expect(first.receipts[0]?.status).toBe("published");
    expect(second.receipts).toEqual([{ ...first.receipts[0], status: "duplicate" }]);
    expect(await server.client.xlen(testTopic(channel))).toBe(1);
  });
});
