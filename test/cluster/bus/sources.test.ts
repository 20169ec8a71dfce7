import { describe, expect, test } from "vitest";
import { computeSlot, cursorKey } from "../../../src/bus/keys.ts";
import { createShardLeases, SHARDS } from "../../../src/bus/sources/shard-leases.ts";
import { createSourcePositions } from "../../../src/bus/sources/source-positions.ts";
import { ANY_DIGEST } from "../../../src/event/event.ts";
import {
  LONG_WRITE_TIMEOUT,
  now,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
  testTopic,
} from "../../bus/support.ts";
import { opened } from "../../support/opened.ts";
import { startRedisCluster } from "../../support/redis.ts";

const cluster = opened(startRedisCluster);
const redis = opened(() => openTestRedis(cluster.url, LONG_WRITE_TIMEOUT));
const publish = opened(() => testPublish(redis));
const positions = opened(() => createSourcePositions({ redis }));

const TYPES = Array.from({ length: 12 }, (_, i) => `t${i}`);

function testSource() {
  const channel = testChannel();
  const ref = { number: channel.number, topics: TYPES.map((type) => testTopic(channel, type)) };
  const write = (epoch: number, version: number, types: readonly string[] = TYPES) =>
    publish(
      {
        channel,
        policy: testPolicy,
        events: types.map((type) => testEvent(channel, `${type}.${version}`, { type })),
        position: { source: channel.number, epoch, version, value: `at ${version}` },
      },
      now,
    );
  async function take() {
    const taken = await positions.takeOver(ref);
    if (taken.kind !== "acquired") throw new Error(`the source must wait ${taken.waitMs} ms`);
    return taken;
  }
  const lengths = () =>
    Promise.all(ref.topics.map(async (topic) => Number(await redis.call("xlen", [topic]))));
  return { channel, ref, write, take, lengths };
}

describe("a new owner of a pull source in a Redis Cluster", () => {
  test("causes writes of the previous owner to be rejected on topics in all slots", async () => {
    const { channel, ref, write, take, lengths } = testSource();
    expect(new Set(ref.topics.map(computeSlot)).size).toBeGreaterThan(6);
    const old = await take();
    await write(old.epoch, 0);
    const next = await take();
    expect(next).toMatchObject({ version: 1, value: "at 0" });
    for (const topic of ref.topics) {
      expect(await redis.call("hget", [`{${topic}}:e`, `s${channel.number}`])).toBe(String(next.epoch));
    }
    // Every slot rejects writes of the previous owner.
    for (const type of TYPES) {
      await expect(write(old.epoch, 1, [type])).rejects.toMatchObject({ stale: "epoch" });
    }
    await write(next.epoch, 1);
    expect(await lengths()).toEqual(TYPES.map(() => 2));
  });

  test("is the only one of 8 concurrent owners that can write, and has a higher epoch than any topic has stored", async () => {
    const { channel, ref, write, take } = testSource();
    const first = await take();
    const seen = first.epoch + 10 ** 9;
    await redis.call("hset", [`{${ref.topics[3]}}:e`, `s${channel.number}`, seen]);
    expect((await take()).epoch).toBeGreaterThan(seen);
    const taken = await Promise.allSettled(Array.from({ length: 8 }, () => take()));
    const epochs = taken.flatMap((one) => (one.status === "fulfilled" ? [one.value.epoch] : []));
    expect(epochs.length).toBeGreaterThan(0);
    const writes = await Promise.allSettled(epochs.map((epoch) => write(epoch, 0)));
    expect(writes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("has its writes rejected after a user sets the cursor", async () => {
    const { channel, ref, write, take } = testSource();
    const run = await take();
    await write(run.epoch, 0);
    expect(await positions.set(ref, "back", { version: 1 })).toBe(2);
    await expect(write(run.epoch, 1)).rejects.toMatchObject({ name: "StaleSourceError" });
    expect(await redis.call("hget", [cursorKey(channel.number), "c"])).toBe("back");
    expect(await take()).toMatchObject({ value: "back", version: 2 });
  });
});

test("a source that publishes events of another channel is fenced in all slots of a Redis Cluster, and moves its own cursor last", async () => {
  const webhook = testChannel();
  const { ref } = testSource();
  const topics = TYPES.map((type) => testTopic(webhook, type));
  const take = async () => {
    const taken = await positions.takeOver({ ...ref, topics: [...ref.topics, ...topics] });
    if (taken.kind !== "acquired") throw new Error(`the source must wait ${taken.waitMs} ms`);
    return taken;
  };
  const events = TYPES.map((type) => ({ ...testEvent(webhook, type, { type }), digest: ANY_DIGEST }));
  const recover = async (epoch: number, version: number, some = events) => {
    const position = { source: ref.number, epoch, version, value: `at ${version}` };
    const { receipts } = await publish({ channel: webhook, events: some, policy: testPolicy, position }, now);
    return receipts.map(({ status }) => status);
  };
  const old = await take();
  const next = await take();
  for (const event of events) {
    await expect(recover(old.epoch, 0, [event])).rejects.toMatchObject({ stale: "epoch" });
  }
  // The worker ended after the writes to some slots, before it moved the cursor.
  await publish({ channel: webhook, events: events.slice(0, 5), policy: testPolicy }, now);
  const expected = TYPES.map((_, i) => (i < 5 ? "duplicate" : "published"));
  expect(await recover(next.epoch, 0)).toEqual(expected);
  await expect(recover(next.epoch, 0)).rejects.toMatchObject({ stale: "cursor" });
  expect(await redis.call("hmget", [cursorKey(ref.number), "v", "c"])).toEqual(["1", "at 0"]);
  const received = TYPES.map((type) => testEvent(webhook, type, { type, data: "other" }));
  const { receipts } = await publish({ channel: webhook, events: received, policy: testPolicy }, now);
  expect(receipts.map(({ status }) => status)).toEqual(TYPES.map(() => "duplicate"));
});

test("shards are divided among the workers in a Redis Cluster as on a single Redis server", async () => {
  const leases = createShardLeases({ redis });
  const renew = (worker: string) => leases.renew(worker, { ttlMs: 60_000, most: SHARDS });
  expect(await renew("a")).toEqual({ workers: 1, share: SHARDS, held: [] });
  await renew("b");
  const [a, b] = [await renew("a"), await renew("b")];
  expect([a.held.length, b.held.length]).toEqual([128, 128]);
  expect(new Set([...a.held, ...b.held]).size).toBe(SHARDS);
  await leases.leave("a");
  expect(await leases.isLive("a")).toBe(false);
  expect((await renew("b")).held).toHaveLength(SHARDS);
});
