import { describe, expect, test } from "vitest";
import { StaleSourceError } from "../../../src/bus/errors.ts";
import { cursorKey } from "../../../src/bus/keys.ts";
import type { Receipt } from "../../../src/bus/publish/publish-batch.ts";
import type { ChannelIdentity } from "../../../src/event/channel.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import {
  LONG_WRITE_TIMEOUT,
  now,
  openedBus,
  openTestRedis,
  testChannel,
  testEvent,
  testPolicy,
  testPublish,
  testTopic,
} from "../support.ts";
import { expectExactEnd, expectNoIdLost } from "./dedupe-support.ts";

const { server, redis, publish } = openedBus();

type Event = ReturnType<typeof testEvent>;

const entryIds = (receipts: readonly Receipt[]) =>
  receipts.map((receipt) => ("entryId" in receipt ? receipt.entryId : receipt.status));

describe("a published event", () => {
  test("is stored as an entry of its topic's stream with all fields in order", async () => {
    const channel = testChannel();
    const event = testEvent(channel, "a", { data: '{"text":"ü 😀 \\u0000","n":12345678901234567890}' });
    const { receipts } = await publish({ channel, events: [event], policy: testPolicy }, now);
    expect(await server.client.xrange(event.topic, "-", "+")).toEqual([
      [entryIds(receipts)[0], event.fields],
    ]);
  });

  test("keeps additional fields and values with line breaks", async () => {
    const channel = testChannel();
    const usual = testEvent(channel, "a");
    const withFields = (id: string, change: (fields: readonly string[]) => readonly string[]): Event => {
      const event = testEvent(channel, id);
      return { ...event, fields: change(event.fields) };
    };
    const events = [
      usual,
      withFields("b", (fields) => [...fields.slice(0, 12), "traceparent", "00-x", "ext", "ü"]),
      withFields("c", (fields) => fields.with(5, "/two\nlines")),
      withFields("d", (fields) => fields.with(11, "text/plain\n; charset=utf-8")),
      testEvent(channel, "e"),
    ];
    await publish({ channel, events, policy: testPolicy }, now);
    const entries = await server.client.xrange(usual.topic, "-", "+");
    expect(entries.map(([, fields]) => fields)).toEqual(events.map(({ fields }) => fields));
  });
});

describe("a published event with a large value", () => {
  const data = `"${"ü".repeat(300_000)}"`;
  const largeEvent = (channel: ChannelIdentity, id: string, more: readonly string[] = []): Event => {
    const event = testEvent(channel, id, { data });
    const large = { at: 13, bytes: Buffer.from(data) };
    return { ...event, fields: [...event.fields.with(13, ""), ...more], large };
  };

  test("is stored with the same text as a small value, and its buffer is freed after the write", async () => {
    const channel = testChannel();
    const events = [largeEvent(channel, "a"), largeEvent(channel, "b", ["traceparent", "00-x"])];
    const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
    const entries = await server.client.xrange(testTopic(channel), "-", "+");
    expect(entries.map(([id]) => id)).toEqual(entryIds(receipts));
    expect(entries.map(([, fields]) => fields)).toEqual(events.map(({ fields }) => fields.with(13, data)));
    expect(events.map(({ large }) => large?.bytes.length)).toEqual([0, 0]);
  });

  test("keeps its buffer if the write fails, because the socket may still be sending it", async () => {
    const channel = testChannel();
    const event = largeEvent(channel, "a");
    await server.client.set(event.topic, "no stream");
    await expect(publish({ channel, events: [event], policy: testPolicy }, now)).rejects.toThrow(
      UnavailableError,
    );
    expect(event.large?.bytes.length).toBe(Buffer.byteLength(data));
  });
});

describe("the signed bytes of a delivery", () => {
  const signed = (bytes: string, names: string) => ({
    identity: bytes.padEnd(22, "-"),
    digest: names.padEnd(11, "-"),
  });
  const statuses = (receipts: readonly Receipt[]) => receipts.map(({ status }) => status);

  test("that arrive a second time with another event id or type are reported as replayed and publish nothing", async () => {
    const channel = testChannel();
    const [a, b, other] = [
      testEvent(channel, "a"),
      testEvent(channel, "b"),
      testEvent(channel, "a", { type: "other" }),
    ];
    const send = async (events: Event[], mark: ReturnType<typeof signed>) =>
      statuses((await publish({ channel, events, policy: testPolicy, signed: mark }, now)).receipts);
    expect(await send([a], signed("x", "1"))).toEqual(["published"]);
    expect(await send([a], signed("x", "1"))).toEqual(["duplicate"]);
    expect(await send([b], signed("x", "2"))).toEqual(["replayed"]);
    expect(await send([other], signed("x", "3"))).toEqual(["replayed"]);
    expect(await send([a, b, b], signed("x", "4"))).toEqual(["duplicate", "replayed", "replayed"]);
    expect(await send([testEvent(channel, "a", { data: "2" })], signed("x", "5"))).toEqual(["conflict"]);
    // With other signed bytes the event is new.
    expect(await send([b], signed("y", "2"))).toEqual(["published"]);
    expect(await server.client.xlen(testTopic(channel))).toBe(2);
    expect(await server.client.exists(testTopic(channel, "other"))).toBe(0);
  });

  test("are remembered per channel, with an expiry", async () => {
    const [channel, another] = [testChannel(), testChannel()];
    const batch = { channel, policy: testPolicy, signed: signed("z", "1") };
    const results = await Promise.all([
      publish({ ...batch, events: [testEvent(channel, "a")] }, now),
      publish({ ...batch, events: [testEvent(channel, "b")], signed: signed("z", "2") }, now),
      publish(
        { ...batch, channel: another, events: [testEvent(another, "c")], signed: signed("z", "3") },
        now,
      ),
    ]);
    expect(results.flatMap(({ receipts }) => statuses(receipts))).toEqual([
      "published",
      "replayed",
      "published",
    ]);
    const keys = await server.client.keys(`inlet:{b.${channel.number}}:*`);
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) if (!key.endsWith(":e")) expect(await server.client.pttl(key)).toBeGreaterThan(0);
  });

  test("are forgotten after the deduplication window, so that the event can be published again", async () => {
    const channel = testChannel();
    const policy = { ...testPolicy, dedupeWindowMs: 100 };
    const send = (id: string, digest: string) =>
      publish({ channel, policy, events: [testEvent(channel, id)], signed: signed("z", digest) }, now);
    await send("a", "1");
    await until(async () => statuses((await send("b", "2")).receipts)[0] === "published");
  });
});

describe("an event whose id was already published", () => {
  test("is a duplicate, and its receipt has the entry id of the first publish", async () => {
    const channel = testChannel();
    const batch = { channel, events: [testEvent(channel, "a")], policy: testPolicy };
    const first = await publish(batch, now);
    const second = await publish(batch, now);
    expect(first.receipts[0]?.status).toBe("published");
    expect(second.receipts).toEqual([{ ...first.receipts[0], status: "duplicate" }]);
    expect(await server.client.xlen(testTopic(channel))).toBe(1);
  });

  test("gets the correct entry id if several events were published in the same millisecond", async () => {
    const channel = testChannel();
    const [a, b, c] = ["a", "b", "c"].map((id) => testEvent(channel, id)) as [Event, Event, Event];
    const { receipts } = await publish({ channel, events: [a, b, c, b], policy: testPolicy }, now);
    const [, idOfB, idOfC, repeated] = entryIds(receipts);
    expect([repeated, receipts[3]?.status]).toEqual([idOfB, "duplicate"]);
    expect(new Set(entryIds(receipts).slice(0, 3)).size).toBe(3);
    const again = await publish({ channel, events: [c, b], policy: testPolicy }, now);
    expect(entryIds(again.receipts)).toEqual([idOfC, idOfB]);
  });

  test("creates only one entry if it is published 20 times concurrently over two connections", async () => {
    await using other = await openTestRedis(server.url, LONG_WRITE_TIMEOUT);
    const publishers = [publish, testPublish(other)];
    const channel = testChannel();
    const event = testEvent(channel, "a");
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        publishers[i % 2]?.({ channel, events: [event], policy: testPolicy }, now),
      ),
    );
    const receipts = results.flatMap((result) => result?.receipts ?? []);
    expect(receipts.filter(({ status }) => status === "published")).toHaveLength(1);
    expect(new Set(entryIds(receipts)).size).toBe(1);
    expect(await server.client.xlen(event.topic)).toBe(1);
  });

  test("is a conflict if its data differs, unless the policy treats conflicts as duplicates", async () => {
    const channel = testChannel();
    const first = await publish({ channel, events: [testEvent(channel, "a")], policy: testPolicy }, now);
    const other = testEvent(channel, "a", { data: "other" });
    const reported = await publish({ channel, events: [other], policy: testPolicy }, now);
    expect(reported.receipts).toEqual([{ status: "conflict" }]);
    const policy = { ...testPolicy, conflict: "duplicate" } as const;
    const ignored = await publish({ channel, events: [other], policy }, now);
    expect(ignored.receipts).toEqual([{ status: "duplicate", entryId: entryIds(first.receipts)[0] }]);
  });

  test("is published as a new event on another topic", async () => {
    const channel = testChannel();
    const events = [testEvent(channel, "a"), testEvent(channel, "a", { type: "other" })];
    const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
    expect(receipts.map(({ status }) => status)).toEqual(["published", "published"]);
  });

  test("is recognized within the same delivery and in later deliveries", async () => {
    const channel = testChannel();
    const a = testEvent(channel, "a");
    const events = [a, testEvent(channel, "b"), a, testEvent(channel, "a", { data: "other" }), a];
    const first = await publish({ channel, events, policy: testPolicy }, now);
    const [published] = entryIds(first.receipts);
    expect(first.receipts.map(({ status }) => status)).toEqual([
      "published",
      "published",
      "duplicate",
      "conflict",
      "duplicate",
    ]);
    expect(entryIds(first.receipts)[2]).toBe(published);
    const again = await publish({ channel, events: [...events].reverse(), policy: testPolicy }, now);
    expect(again.receipts.map(({ status }) => status)).toEqual([
      "duplicate",
      "conflict",
      "duplicate",
      "duplicate",
      "duplicate",
    ]);
    expect(await server.client.xlen(a.topic)).toBe(2);
  });

  test("is published again if deduplication is disabled", async () => {
    const channel = testChannel();
    const events = [testEvent(channel, "a", { remembered: false })];
    const policy = { ...testPolicy, dedupeWindowMs: 0 };
    for (let i = 0; i < 2; i++) {
      expect((await publish({ channel, events, policy }, now)).receipts[0]?.status).toBe("published");
    }
    expect(await server.client.keys(`{${testTopic(channel)}}:*`)).toEqual([]);
  });
});

describe("an event that Redis rejects", () => {
  test("is not remembered as a duplicate, so that a retry publishes it", async () => {
    const channel = testChannel();
    const batch = { channel, events: [testEvent(channel, "a")], policy: testPolicy };
    const topic = testTopic(channel);
    await server.client.xadd(topic, "18446744073709551615-18446744073709551615", "data", "");
    await expect(publish(batch, now)).rejects.toThrow(/exhausted/);
    await server.client.del(topic);
    expect((await publish(batch, now)).receipts[0]?.status).toBe("published");
    const keys = await server.client.keys(`{${topic}}:*`);
    expect(keys).toHaveLength(1);
    for (const key of keys) expect(await server.client.pttl(key)).toBeGreaterThan(0);
  });

  test("stops the rest of its delivery, and a retry publishes only the missing events", async () => {
    const channel = testChannel();
    const [a, b, c] = ["a", "b", "c"].map((id) => testEvent(channel, id)) as [Event, Event, Event];
    const refused = { ...b, fields: ["a name without its value"] };
    const write = (events: Event[]) => publish({ channel, events, policy: testPolicy }, now);
    await expect(write([a, refused, c])).rejects.toThrow(/Wrong number of args/);
    expect(await server.client.xlen(testTopic(channel))).toBe(1);
    const { receipts } = await write([a, b, c]);
    expect(receipts.map(({ status }) => status)).toEqual(["duplicate", "published", "published"]);
  });
});

describe("the deduplication window", () => {
  test("starts when an event is published and has exactly the configured length, by the clock of Redis", async () => {
    await expectExactEnd({ publish, client: server.client, dedupeWindowMs: 700 });
  });

  test.each([
    ["longer", 86_400_000, 5 * 86_400_000],
    ["shorter", 86_400_000, 3_600_000],
    ["longer, from a short one", 600_000, 86_400_000],
    ["shorter, to a short one", 86_400_000, 600_000],
  ])("can be made %s without forgetting event ids that are still within the window", async (_, from, to) => {
    const channel = testChannel();
    const events = [testEvent(channel, "a")];
    const publishUnder = async (dedupeWindowMs: number) =>
      (await publish({ channel, events, policy: { ...testPolicy, dedupeWindowMs } }, now)).receipts[0]
        ?.status;
    expect(await publishUnder(from)).toBe("published");
    expect(await publishUnder(to)).toBe("duplicate");
    const fresh = [testEvent(channel, "b")];
    const policy = { ...testPolicy, dedupeWindowMs: to };
    expect((await publish({ channel, events: fresh, policy }, now)).receipts[0]?.status).toBe("published");
    const back = { ...testPolicy, dedupeWindowMs: from };
    expect((await publish({ channel, events: fresh, policy: back }, now)).receipts[0]?.status).toBe(
      "duplicate",
    );
    expect(await publishUnder(from)).toBe("duplicate");
  });

  test("may differ between deliveries in one Redis call, and duplicates are still recognized", async () => {
    const channel = testChannel();
    const send = (id: string, dedupeWindowMs: number) =>
      publish({ channel, events: [testEvent(channel, id)], policy: { ...testPolicy, dedupeWindowMs } }, now);
    // Sent in one event loop iteration, these are one call. The second delivery introduces the other window.
    const sent = await Promise.all([
      send("x", 86_400_000),
      send("y", 3_600_000),
      send("y", 86_400_000),
      send("x", 3_600_000),
    ]);
    const statuses = sent.map(({ receipts }) => receipts[0]?.status);
    expect(statuses).toEqual(["published", "published", "duplicate", "duplicate"]);
  });

  test("limits the expiry of every deduplication key to one and a half windows", async () => {
    const channel = testChannel();
    const policy = { ...testPolicy, dedupeWindowMs: 3_600_000 };
    const events = Array.from({ length: 400 }, () => testEvent(channel));
    await publish({ channel, events, policy }, now);
    const notes = `{${testTopic(channel)}}:e`;
    const keys = (await server.client.keys(`{${testTopic(channel)}}:*`)).filter((key) => key !== notes);
    expect(keys.length).toBeGreaterThan(3);
    const ends = await Promise.all(keys.map((key) => server.client.pttl(key)));
    expect(Math.min(...ends)).toBeGreaterThan(0);
    expect(Math.max(...ends)).toBeLessThanOrEqual(1.5 * policy.dedupeWindowMs);
  });
});

test("deduplication forgets no event id while it splits full hash buckets", async () => {
  await expectNoIdLost({ publish, client: server.client, ids: 10_000 });
});

describe("a delivery that cannot be written", () => {
  test("is not written at all if the key of its second topic is not a Redis stream", async () => {
    const channel = testChannel();
    const [first, second] = [testEvent(channel, "a"), testEvent(channel, "b", { type: "taken" })];
    await server.client.set(second.topic, "not a stream");
    await expect(publish({ channel, events: [first, second], policy: testPolicy }, now)).rejects.toThrow(
      /WRONGTYPE/,
    );
    expect(await server.client.exists(first.topic)).toBe(0);
    await server.client.del(second.topic);
    const { receipts } = await publish({ channel, events: [first, second], policy: testPolicy }, now);
    expect(receipts.map(({ status }) => status)).toEqual(["published", "published"]);
  });

  test("does not affect other deliveries in the same Redis call", async () => {
    const channel = testChannel();
    const taken = testEvent(channel, "t", { type: "taken" });
    await server.client.set(taken.topic, "not a stream");
    let calls = 0;
    const counted = testPublish(redis, { onCall: () => void calls++ });
    const results = await Promise.allSettled(
      Array.from({ length: 15 }, (_, i) =>
        counted(
          { channel, events: i % 2 ? [taken, testEvent(channel)] : [testEvent(channel)], policy: testPolicy },
          now,
        ),
      ),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(8);
    expect(await server.client.xlen(testTopic(channel))).toBe(8);
    expect(calls).toBe(1);
  });

  test("is not sent to Redis if its caller has aborted", async () => {
    const channel = testChannel();
    const abort = new AbortController();
    const publishing = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, abort);
    abort.abort(new Error("given up"));
    await expect(publishing).rejects.toThrow("given up");
    expect(await server.client.exists(testTopic(channel))).toBe(0);
  });
});

test("a delivery with 1001 events is written completely and in order, together with its cursor", async () => {
  const channel = testChannel();
  await server.client.hset(cursorKey(channel.number), "e", 1);
  const events = Array.from({ length: 1001 }, (_, i) => testEvent(channel, `id-${i}`));
  const { receipts } = await publish(
    {
      channel,
      events,
      policy: testPolicy,
      position: { source: channel.number, epoch: 1, version: 0, value: "end" },
    },
    now,
  );
  const entries = await server.client.xrange(testTopic(channel), "-", "+");
  expect(entries.map(([id]) => id)).toEqual(entryIds(receipts));
  expect(entries.map(([, fields]) => fields[3])).toEqual(events.map(({ id }) => id));
  expect(await server.client.hgetall(cursorKey(channel.number))).toMatchObject({ v: "1", c: "end" });
});

test("an event that is larger than the size limit of one Redis call is published", async () => {
  const channel = testChannel();
  const data = "x".repeat(6 * 1024 * 1024);
  const events = [testEvent(channel, "a"), testEvent(channel, "b", { data }), testEvent(channel, "c")];
  const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
  expect(receipts.map(({ status }) => status)).toEqual(["published", "published", "published"]);
});

describe("a delivery of a pull source", () => {
  const position = ({ number: source }: { readonly number: number }, epoch: number, version: number) => ({
    source,
    epoch,
    version,
    value: `at ${version}`,
  });
  const cursorOf = (channel: { readonly number: number }) => server.client.hgetall(cursorKey(channel.number));

  async function ownedChannel(epoch: number) {
    const channel = testChannel();
    await server.client.hset(cursorKey(channel.number), "e", epoch);
    return channel;
  }

  test("writes its events and cursor together, and is rejected if another write has moved the cursor", async () => {
    const channel = await ownedChannel(1);
    const batch = (id: string, version: number) => ({
      channel,
      events: [testEvent(channel, id)],
      policy: testPolicy,
      position: position(channel, 1, version),
    });
    await publish(batch("a", 0), now);
    await publish(batch("b", 1), now);
    const stale = publish(batch("c", 1), now);
    await expect(stale).rejects.toBeInstanceOf(StaleSourceError);
    await expect(stale).rejects.toMatchObject({ stale: "cursor" });
    expect(await server.client.xlen(testTopic(channel))).toBe(2);
    expect(await cursorOf(channel)).toMatchObject({ e: "1", v: "2", c: "at 1" });
  });

  test("is rejected if another worker has taken over the source or the cursor was deleted", async () => {
    const channel = await ownedChannel(7);
    const events = [testEvent(channel)];
    const write = (epoch: number) =>
      publish({ channel, events, policy: testPolicy, position: position(channel, epoch, 0) }, now);
    await expect(write(6)).rejects.toMatchObject({ name: "StaleSourceError", stale: "epoch" });
    await server.client.del(cursorKey(channel.number));
    await expect(write(7)).rejects.toMatchObject({ stale: "epoch" });
    expect(await server.client.exists(testTopic(channel))).toBe(0);
  });

  test("moves the cursor even if it has no events", async () => {
    const channel = await ownedChannel(1);
    await publish({ channel, events: [], policy: testPolicy, position: position(channel, 1, 0) }, now);
    expect(await cursorOf(channel)).toMatchObject({ v: "1", c: "at 0" });
  });

  test("is rejected if the delivery before it was not written", async () => {
    const channel = await ownedChannel(1);
    const write = (id: string, version: number) =>
      publish(
        {
          channel,
          events: [testEvent(channel, id)],
          policy: testPolicy,
          position: { source: channel.number, epoch: 1, version },
        },
        now,
      );
    await write("a", 0);
    await expect(write("c", 2)).rejects.toMatchObject({ stale: "cursor" });
    expect(await cursorOf(channel)).toEqual({ e: "1", v: "1" });
  });

  test("does not move the cursor if one of its events is a conflict", async () => {
    const channel = await ownedChannel(1);
    await publish({ channel, events: [testEvent(channel, "id-3")], policy: testPolicy }, now);
    const events = Array.from({ length: 600 }, (_, i) => testEvent(channel, `id-${i}`, { data: "other" }));
    const write = (part: typeof events) =>
      publish({ channel, events: part, policy: testPolicy, position: position(channel, 1, 0) }, now);
    for (const part of [events.slice(0, 10), events]) {
      expect((await write(part)).receipts[3]).toEqual({ status: "conflict" });
      expect(await cursorOf(channel)).toEqual({ e: "1" });
    }
  });
});

test("publishing loads its Lua script again if Redis no longer has the script", async () => {
  await using own = await startRedis();
  await using ownRedis = await openTestRedis(own.url);
  const channel = testChannel();
  await own.client.script("FLUSH");
  const results = await Promise.all(
    [1, 2, 3].map(() =>
      testPublish(ownRedis)({ channel, events: [testEvent(channel)], policy: testPolicy }, now),
    ),
  );
  expect(results.map(({ receipts }) => receipts[0]?.status)).toEqual(["published", "published", "published"]);
});

test("publishing trims the stream of a topic to the topic's maximum number of entries", async () => {
  const channel = testChannel();
  const policy = { ...testPolicy, maxEntries: 500 };
  for (let i = 0; i < 4; i++) {
    const events = Array.from({ length: 500 }, () => testEvent(channel));
    await publish({ channel, events, policy }, now);
  }
  expect(await server.client.xlen(testTopic(channel))).toBeLessThan(700);
});
