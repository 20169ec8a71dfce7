import { expect, it } from "vitest";
import { openRedis } from "../../../src/bus/connection/redis.ts";
import { createRateCounter } from "../../../src/bus/limits/rate-counter.ts";
import { createBudget } from "../../../src/http/rate-limiter.ts";
import { createLog } from "../../../src/log.ts";
import { startRedisCluster } from "../../support/redis.ts";

it("counts each key on its own master of a Cluster", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openRedis({
    url: cluster.url,
    log: createLog({ level: "silent" }),
    durability: "none",
    durabilityAsserted: false,
    signal: new AbortController().signal,
  });
  const budget = createBudget({
    name: "test",
    limit: 2,
    windowSeconds: 60,
    count: createRateCounter({ redis }),
  });
  const keys = Array.from({ length: 20 }, (_, i) => `key_${i}`);
  for (const allowed of [true, true, false]) {
    for (const key of keys) expect((await budget.take(key)).allowed).toBe(allowed);
  }
  const counted = await Promise.all(cluster.masters.map(({ client }) => client.dbsize()));
  expect(counted.reduce((sum, size) => sum + size)).toBe(keys.length);
  expect(Math.min(...counted)).toBeGreaterThan(0);
});
