import { expect, it } from "vitest";
import { createRedisMarker } from "../../../src/bus/connection/redis-marker.ts";
import { openTestRedis } from "../../bus/support.ts";
import { startRedisCluster } from "../../support/redis.ts";

it("the markers of a Cluster reveal that any single master has lost its data", async () => {
  await using cluster = await startRedisCluster();
  await using redis = await openTestRedis(cluster.url);
  const marker = createRedisMarker({ redis });
  expect((await marker.check(true)).id).toBeUndefined();
  for (const [index, { client }] of cluster.masters.entries()) {
    const id = `mark_${index}`;
    await marker.replace(id);
    expect(await marker.check(true)).toEqual({ id, lostMs: 0 });
    await client.flushall();
    expect((await marker.check(true)).id).toBeUndefined();
  }
});
