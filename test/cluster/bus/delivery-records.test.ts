import { expect, test } from "vitest";
import {
  createDeliveryRecords,
  type NewDeliveryRecord,
} from "../../../src/bus/deliveries/delivery-records.ts";
import { createId } from "../../../src/lib/ids.ts";
import { openTestRedis, testChannel } from "../../bus/support.ts";
import { startRedisCluster } from "../../support/redis.ts";

test("in a Redis Cluster, delivery records of organizations in different slots can be written, found and deleted", async () => {
  await using stack = new AsyncDisposableStack();
  const cluster = stack.use(await startRedisCluster());
  const redis = stack.use(await openTestRedis(cluster.url));
  const records = createDeliveryRecords({ redis });
  const channels = Array.from({ length: 12 }, testChannel);
  const made = channels.map(({ number, uid, appId, organizationId }): NewDeliveryRecord => {
    const receivedAtMs = Date.now();
    return {
      record: {
        id: createId("del", receivedAtMs),
        channelNumber: number,
        channelUid: uid,
        appId,
        organizationId,
        receivedAtMs,
        bodyBytes: 2,
        requestId: null,
        clientAddress: null,
        method: "POST",
        headers: {},
        query: {},
        hasBody: true,
        durationMs: 1,
        status: "published",
        httpStatus: 200,
        reason: null,
        verification: { result: "none", scheme: "none", preset: null, deliveryId: null },
        outcome: {
          received: 1,
          published: 1,
          duplicates: 0,
          ignored: 0,
          quarantined: 0,
          events: [],
          quarantine: [],
        },
      },
      items: [],
      body: Buffer.from("{}"),
    };
  });
  expect(await records.write(made)).toBe(made.length);
  for (const [at, { organizationId, number }] of channels.entries()) {
    const id = made[at]?.record.id ?? "";
    expect(await records.find(organizationId, id)).toEqual(made[at]);
    expect(await records.readBytes(organizationId)).toBeGreaterThan(0);
    await records.delete(organizationId, number, [id]);
    expect(await records.list(organizationId, [number])).toEqual([]);
    expect(await records.readBytes(organizationId)).toBe(0);
  }
});
