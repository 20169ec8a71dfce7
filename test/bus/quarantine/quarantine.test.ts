import { describe, expect, test } from "vitest";
import { createQuarantineStore } from "../../../src/bus/quarantine/quarantine.ts";
import type {
  QuarantineItem,
  QuarantineLimits,
  QuarantineWrite,
} from "../../../src/bus/quarantine/quarantine-record.ts";
import type { ChannelIdentity } from "../../../src/event/channel.ts";
import type { QuarantineReason } from "../../../src/event/outcome.ts";
import type { VerifiedDelivery } from "../../../src/event/received.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { opened } from "../../support/opened.ts";
import { until } from "../../support/until.ts";
import { now, openedBus, testChannel, testEvent, testPolicy, testPublish, testTopic } from "../support.ts";

const { server, redis, publish } = openedBus();
const quarantine = opened(() => createQuarantineStore({ redis, publish }));

const deliveryOf = (body: string | Buffer, headers: Record<string, string> = {}): VerifiedDelivery => ({
  method: "POST",
  headers: Object.assign(Object.create(null), { "content-type": "application/json", ...headers }),
  query: Object.assign(Object.create(null), { a: ["1", "2"] }),
  body: Buffer.from(body),
  arrivedAtMs: 1_700_000_000_000,
  deliveryId: "d1",
});

const itemOf = (
  item: number,
  reason: QuarantineReason = "schema_mismatch",
  keep: QuarantineItem["keep"] = "all",
): QuarantineItem => ({
  failure: { item, reason, path: "/a", detail: "it does not fit", definitions: ["push"] },
  keep,
});

const put = (channel: ChannelIdentity, write: QuarantineWrite) => quarantine.put(channel, write, now);
const scope = (channel: ChannelIdentity) => ({
  organizationId: channel.organizationId,
  channelNumbers: [channel.number],
});
const all = { limit: 200, offset: 0 };
const keysOf = (channel: ChannelIdentity) => server.client.keys(`inlet:{q.${channel.organizationId}}:*`);

describe("a quarantined item", () => {
  test("is stored with all bytes of its delivery's body", async () => {
    const channel = testChannel();
    for (const body of [
      Buffer.from([0, 255, 254, 13, 10, 128]),
      Buffer.from('\ufeff{"ü": 1}'),
      Buffer.alloc(0),
    ]) {
      const delivery = deliveryOf(body);
      const [id = ""] = await put(channel, { delivery, items: [itemOf(3)] });
      const found = await quarantine.find(channel.organizationId, id);
      expect(found?.delivery).toEqual(delivery);
      expect(found?.record).toMatchObject({
        id,
        channelNumber: channel.number,
        organizationId: channel.organizationId,
        appId: channel.appId,
        channelUid: channel.uid,
        item: 3,
        reason: "schema_mismatch",
        path: "/a",
        detail: "it does not fit",
        definitions: ["push"],
        count: 1,
      });
    }
  });

  test("that arrives again keeps a single record, which counts the repeats", async () => {
    const channel = testChannel();
    const [first] = await put(channel, { delivery: deliveryOf("{}", { date: "a" }), items: [itemOf(0)] });
    const again = {
      delivery: deliveryOf("{}", { date: "b" }),
      items: [itemOf(0), itemOf(1), itemOf(0, "id_missing")],
    };
    const ids = await put(channel, again);
    expect(ids[0]).toBe(first);
    expect(new Set(ids).size).toBe(3);
    const { records, total } = await quarantine.list(scope(channel), all);
    expect(total).toBe(3);
    expect(records.map(({ count }) => count).sort()).toEqual([1, 1, 2]);
    const repeated = records.find(({ id }) => id === first);
    expect(repeated?.lastAtMs).toBeGreaterThanOrEqual(repeated?.firstAtMs ?? Number.NaN);
  });

  test("gets a separate record if the headers of its delivery differ from an earlier delivery", async () => {
    const channel = testChannel();
    const [push] = await put(channel, {
      delivery: deliveryOf("{}", { "x-event": "push" }),
      items: [itemOf(0)],
    });
    const [ping] = await put(channel, {
      delivery: deliveryOf("{}", { "x-event": "ping" }),
      items: [itemOf(0)],
    });
    expect(push).not.toBe(ping);
  });

  test("shares one stored copy of its delivery with the delivery's other items, until the last item is deleted", async () => {
    const channel = testChannel();
    const ids = await put(channel, { delivery: deliveryOf("x".repeat(1000)), items: [itemOf(0), itemOf(1)] });
    const deliveries = async () => (await keysOf(channel)).filter((key) => key.includes(":d:"));
    expect(await deliveries()).toHaveLength(1);
    expect(await quarantine.delete(channel.organizationId, ids[0] ?? "")).toBe(true);
    expect(await deliveries()).toHaveLength(1);
    expect(await quarantine.delete(channel.organizationId, ids[1] ?? "")).toBe(true);
    expect(await quarantine.delete(channel.organizationId, ids[1] ?? "")).toBe(false);
    expect(await keysOf(channel)).toEqual([]);
  });

  test("is stored when its delivery is published, and deleted by a later publish that releases it", async () => {
    const channel = testChannel();
    const { quarantineIds } = await publish(
      {
        channel,
        events: [testEvent(channel, "good")],
        policy: testPolicy,
        quarantine: { delivery: deliveryOf("[]"), items: [itemOf(1), itemOf(2)] },
      },
      now,
    );
    const [released = "", kept] = quarantineIds;
    const batch = {
      channel,
      events: [testEvent(channel, "mended")],
      policy: testPolicy,
      release: [released, "qi_unknown"],
    };
    await publish(batch, now);
    expect((await quarantine.list(scope(channel), all)).records.map(({ id }) => id)).toEqual([kept]);
    expect(await server.client.xlen(testTopic(channel))).toBe(2);
  });
});

describe("the list of quarantined items", () => {
  const reasons = ["schema_mismatch", "id_missing", "invalid_body"] as const;

  test("is ordered by arrival, then id, across pages, channels and reasons", async () => {
    const one = testChannel();
    const other = { ...testChannel(), organizationId: one.organizationId };
    for (let i = 0; i < 60; i++) {
      const items = [0, 1, 2].map((item) => itemOf(item, reasons[(i + item) % 3]));
      await put(i % 2 ? one : other, { delivery: deliveryOf(`{"i":${i}}`), items });
    }
    const filter = { organizationId: one.organizationId, channelNumbers: [one.number, other.number] };
    const { records, total } = await quarantine.list(filter, { limit: 200, offset: 0 });
    expect(total).toBe(180);
    expect(records.map(({ firstAtMs }) => firstAtMs)).toEqual(
      records.map(({ firstAtMs }) => firstAtMs).sort(),
    );
    expect(records.map(({ item }) => item)).toEqual(Array.from({ length: 180 }, (_, i) => i % 3));
    const paged = [];
    for (let offset = 0; offset < 180; offset += 7) {
      paged.push(...(await quarantine.list(filter, { limit: 7, offset })).records);
    }
    expect(paged.map(({ id }) => id)).toEqual(records.map(({ id }) => id));

    const ofReason = await quarantine.list({ ...filter, reason: "id_missing" }, all);
    expect(ofReason.records).toEqual(records.filter(({ reason }) => reason === "id_missing"));
    const ofChannel = await quarantine.list({ ...filter, channelNumbers: [one.number] }, all);
    expect(ofChannel.records).toEqual(records.filter(({ channelNumber }) => channelNumber === one.number));
    const [fromMs = 0, toMs = 0] = [records[40]?.firstAtMs, records[120]?.firstAtMs];
    const between = await quarantine.list({ ...filter, fromMs, toMs }, all);
    expect(between.records).toEqual(
      records.filter(({ firstAtMs }) => firstAtMs >= fromMs && firstAtMs < toMs),
    );
    expect(between.total).toBe(between.records.length);
    expect(await quarantine.list(filter, { limit: 10, offset: 500 })).toEqual({ records: [], total: 180 });
  });
});

describe("quarantine limits", () => {
  const limited = (limits: Partial<QuarantineLimits>) => {
    const quarantineLimits = {
      newestItems: 1000,
      newestBytes: 1e9,
      channelBytes: 1e9,
      organizationBytes: 1e9,
      keepMs: 1e9,
      ...limits,
    };
    return createQuarantineStore({
      redis,
      publish: testPublish(redis, { quarantineLimits }),
      limits: quarantineLimits,
    });
  };

  test("keep only the newest items that match no event definition", async () => {
    const channel = testChannel();
    const store = limited({ newestItems: 10 });
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) {
      const write = { delivery: deliveryOf(`${i}`), items: [itemOf(0, "no_match", "newest")] };
      ids.push(...(await store.put(channel, write, now)));
    }
    const { records, total } = await store.list({ ...scope(channel), reason: "no_match" }, all);
    expect(total).toBe(10);
    expect(records.map(({ id }) => id)).toEqual(ids.slice(-10));
  });

  test("evict the oldest items that match no event definition when these items exceed their byte limit", async () => {
    const channel = testChannel();
    const store = limited({ newestBytes: 100_000 });
    for (let i = 0; i < 20; i++) {
      const write = {
        delivery: deliveryOf(`${i}${"x".repeat(20_000)}`),
        items: [itemOf(0, "no_match", "newest")],
      };
      await store.put(channel, write, now);
    }
    expect((await store.list(scope(channel), all)).total).toBe(4);
  });

  test.each([
    ["channel", { channelBytes: 50_000 }],
    ["organization", { organizationBytes: 50_000 }],
  ])("reject a delivery that would exceed the byte limit of the %s, until another item is deleted", async (_, limits) => {
    const channel = testChannel();
    const quarantineLimits = {
      newestItems: 9,
      newestBytes: 1e9,
      channelBytes: 1e9,
      organizationBytes: 1e9,
      keepMs: 1e9,
      ...limits,
    };
    const limitedPublish = testPublish(redis, { quarantineLimits });
    const batch = (i: number) => ({
      channel,
      events: [testEvent(channel)],
      policy: testPolicy,
      quarantine: { delivery: deliveryOf(`${i}${"x".repeat(20_000)}`), items: [itemOf(0)] },
    });
    const [first = ""] = (await limitedPublish(batch(0), now)).quarantineIds;
    await limitedPublish(batch(1), now);
    const refused = limitedPublish(batch(2), now);
    await expect(refused).rejects.toBeInstanceOf(UnavailableError);
    await expect(refused).rejects.toThrow(/is full/);
    expect(await server.client.xlen(testTopic(channel))).toBe(2);
    expect((await limitedPublish(batch(1), now)).quarantineIds).toHaveLength(1);
    await quarantine.delete(channel.organizationId, first);
    expect((await limitedPublish(batch(2), now)).quarantineIds).toHaveLength(1);
  });

  test("count stored bytes exactly after any mix of writes, deletions and evictions", async () => {
    const channel = testChannel();
    const store = limited({ newestItems: 5 });
    const ids: string[] = [];
    for (let i = 0; i < 200; i++) {
      const items = [itemOf(i % 3, "no_match", "newest"), itemOf(i % 2, "schema_mismatch")].slice(
        i % 2,
        1 + (i % 3),
      );
      if (items.length === 0) continue;
      ids.push(...(await store.put(channel, { delivery: deliveryOf(`${i % 23}`), items }, now)));
      if (i % 4 === 0) await store.delete(channel.organizationId, ids[(i * 7) % ids.length] ?? "");
    }
    const budget = await server.client.hgetall(`inlet:{q.${channel.organizationId}}:b`);
    const sums: Record<string, number> = { t: 0 };
    for (const key of await keysOf(channel)) {
      if (!key.includes(":d:") && !key.includes(":r:")) continue;
      const [account, bytes] = await server.client.hmget(key, key.includes(":d:") ? "c" : "a", "z");
      sums[account ?? ""] = (sums[account ?? ""] ?? 0) + Number(bytes);
      sums.t = (sums.t ?? 0) + Number(bytes);
    }
    const held = Object.entries(budget).filter(([name]) => !name.endsWith(":dropped"));
    expect(Object.fromEntries(held.map(([name, bytes]) => [name, Number(bytes)]))).toEqual(sums);
    await store.purge(channel.organizationId, channel.number);
    expect(await keysOf(channel)).toEqual([]);
  });

  test("delete an item once it is older than the retention time", async () => {
    const channel = testChannel();
    const store = limited({ keepMs: 3_600_000 });
    await store.put(channel, { delivery: deliveryOf("1"), items: [itemOf(0)] }, now);
    const [index = "", ...more] = (await keysOf(channel)).filter((key) => key.includes(":x:"));
    expect(more).toEqual([]);
    const [id = "", score] = await server.client.zrange(index, "0", "-1", "WITHSCORES");
    /** Sets the record's age through its score, in microseconds (quarantine-store.lua). */
    const countAt = async (ageMs: number) => {
      await server.client.zadd(index, Number(score) - ageMs * 1_000, id);
      await store.expire(channel.organizationId);
      return (await store.list(scope(channel), all)).total;
    };
    expect(await countAt(1_800_000)).toBe(1);
    expect(await countAt(3_700_000)).toBe(0);
  });

  test("delete expired items, except the newest items that match no event definition", async () => {
    const channel = testChannel();
    const store = limited({ keepMs: 200 });
    await store.put(
      channel,
      { delivery: deliveryOf("1"), items: [itemOf(0), itemOf(1, "no_match", "newest")] },
      now,
    );
    await until(async () => {
      await store.expire(channel.organizationId);
      return (await store.list(scope(channel), all)).total === 1;
    });
    expect((await store.list(scope(channel), all)).records[0]?.reason).toBe("no_match");
  });
});

test("purging the quarantine of a channel deletes all items of this channel and no items of other channels", async () => {
  const channel = testChannel();
  const other = { ...testChannel(), organizationId: channel.organizationId };
  for (let i = 0; i < 300; i++) {
    await put(i % 3 ? channel : other, {
      delivery: deliveryOf(`${i}`),
      items: [itemOf(0), itemOf(1, "no_match", "newest")],
    });
  }
  await quarantine.purge(channel.organizationId, channel.number);
  expect((await quarantine.list(scope(channel), all)).total).toBe(0);
  expect((await quarantine.list(scope(other), all)).total).toBe(200);
  await quarantine.purge(other.organizationId, other.number);
  expect(await keysOf(channel)).toEqual([]);
});
