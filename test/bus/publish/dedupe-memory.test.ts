import { afterAll, beforeAll, test } from "vitest";
import type { RedisBus } from "../../../src/bus/connection/redis.ts";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { openTestRedis, testPublish } from "../support.ts";
import { expectBytesPerId } from "./dedupe-memory-support.ts";

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

test.each([
  [60, 60, 64],
  [60, 60, 85],
  [60, 1, 11_000],
  [300, 600, 1],
])("a remembered id takes at most %d bytes on %d topics with %d ids each", async (most, topics, ids) => {
  await expectBytesPerId({ publish, client: server.client, topics, ids, most });
});
