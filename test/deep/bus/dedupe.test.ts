import { test } from "vitest";
import { expectBytesPerId } from "../../bus/publish/dedupe-memory-support.ts";
import { expectExactEnd, expectNoIdLost } from "../../bus/publish/dedupe-support.ts";
import { LONG_WRITE_TIMEOUT, openTestRedis, testPublish } from "../../bus/support.ts";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";

const server = opened(startRedis);
const redis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));
const publish = opened(() => testPublish(redis));

test.each([
  1300, 2000,
])("a repeated event id is a duplicate until exactly %d ms have passed, the dedupe window", async (dedupeWindowMs) => {
  await expectExactEnd({ publish, client: server.client, dedupeWindowMs });
});

test("every repeated id is detected as a duplicate while the dedupe memory in Redis grows to 200,000 ids", async () => {
  await expectNoIdLost({ publish, client: server.client, ids: 200_000 });
});

test.each([
  [100, 64],
  [100, 85],
  [1, 60_000],
  [1, 87_000],
])("an id that is remembered for deduplication uses at most 60 bytes of Redis memory, with %d topics of %d ids each", async (topics, ids) => {
  await expectBytesPerId({ publish, client: server.client, topics, ids, most: 60 });
});
