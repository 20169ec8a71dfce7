import { test } from "vitest";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { LONG_WRITE_TIMEOUT, openTestRedis, testPublish } from "../support.ts";
import { expectBytesPerId } from "./dedupe-memory-support.ts";

const server = opened(startRedis);
const redis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));
const publish = opened(() => testPublish(redis));

test.each([
  [60, 60, 64],
  [60, 60, 85],
  [60, 1, 11_000],
  [300, 600, 1],
])("deduplication uses at most %d bytes of Redis memory per event id, for %d topics with %d ids each", async (most, topics, ids) => {
  await expectBytesPerId({ publish, client: server.client, topics, ids, most });
});
