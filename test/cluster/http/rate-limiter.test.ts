import { expect, it } from "vitest";
import { openRedis } from "../../../src/bus/connection/redis.ts";
import { createRateLimiters } from "../../../src/bus/limits/rate-limiter.ts";
import { createLog } from "../../../src/log.ts";
import { startRedisCluster } from "../../support/redis.ts";

it("the rate limiter counts each key on the Redis Cluster master that has the key's slot", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openRedis({
    url: cluster.url,
    log: createLog({ level: "silent" }),
    durability: "none",
    durabilityAsserted: false,
    signal: new AbortController().signal,
  });
  const limiter = createRateLimiters({ redis })({ name: "test", limit: 2, windowSeconds: 60 });
  const keys = Array.from({ length: 20 }, (_, i) => `key_${i}`);
  for (const allowed of [true, true, false]) {
    for (const key of keys) expect((await limiter.take(key)).allowed).toBe(allowed);
  }
  const counted = await Promise.all(cluster.masters.map(({ client }) => client.dbsize()));
  expect(counted.reduce((sum, size) => sum + size)).toBe(keys.length);
  expect(Math.min(...counted)).toBeGreaterThan(0);
});
