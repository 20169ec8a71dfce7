import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { Publish } from "../../../src/bus/publish/publish.ts";
import type { Receipt } from "../../../src/bus/publish/publish-batch.ts";
import { now, testChannel, testEvent, testPolicy, testTopic } from "../support.ts";

interface OnRedis {
  readonly publish: Publish;
  readonly client: Redis;
}

/** Publishes one id repeatedly until its window has ended twice. Checks the end against the Redis clock around each call. */
export async function expectExactEnd({
  publish,
  client,
  dedupeWindowMs,
}: OnRedis & { readonly dedupeWindowMs: number }): Promise<void> {
  const channel = testChannel();
  const policy = { ...testPolicy, dedupeWindowMs };
  const batch = { channel, events: [testEvent(channel, "a")], policy };
  const msOf = (receipt: Receipt | undefined) =>
    receipt && "entryId" in receipt ? Number(receipt.entryId.split("-")[0]) : Number.NaN;
  const redisMs = async () => {
    const [seconds, micros] = await client.time();
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  };
  let first = msOf((await publish(batch, now)).receipts[0]);
  for (let round = 0; round < 2; round++) {
    for (;;) {
      const before = await redisMs();
      const [receipt] = (await publish(batch, now)).receipts;
      const after = await redisMs();
      if (receipt?.status === "published") {
        expect(after - first).toBeGreaterThanOrEqual(dedupeWindowMs);
        first = msOf(receipt);
        break;
      }
      expect(msOf(receipt)).toBe(first);
      expect(before - first).toBeLessThan(dedupeWindowMs);
      // Polls slowly until the window is about to end.
      const leftMs = dedupeWindowMs - (after - first);
      await new Promise((resolve) => setTimeout(resolve, leftMs > 100 ? 40 : 0));
    }
  }
  expect(await client.xlen(testTopic(channel))).toBe(3);
}

/** Publishes ids twice: all are new, then all are known. Also checks that buckets stay small and have an expiry. */
export async function expectNoIdLost({
  publish,
  client,
  ids,
}: OnRedis & { readonly ids: number }): Promise<void> {
  const channel = testChannel();
  const events = Array.from({ length: ids }, (_, i) => testEvent(channel, `id-${i}`));
  const publishAll = async () => {
    const statuses = new Map<string, number>();
    for (let i = 0; i < events.length; i += 500) {
      const batch = { channel, events: events.slice(i, i + 500), policy: testPolicy };
      for (const { status } of (await publish(batch, now)).receipts) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    }
    return Object.fromEntries(statuses);
  };
  expect(await publishAll()).toEqual({ published: ids });
  expect(await publishAll()).toEqual({ duplicate: ids });
  const buckets = await client.keys(`{${testTopic(channel)}}:*`);
  expect(buckets.length).toBeGreaterThan(ids / 100);
  const encodings = await Promise.all(buckets.map((key) => client.object("ENCODING", key)));
  expect(new Set(encodings)).toEqual(new Set(["listpack"]));
  const ends = await Promise.all(buckets.map((key) => client.pttl(key)));
  expect(Math.min(...ends)).toBeGreaterThan(0);
}
