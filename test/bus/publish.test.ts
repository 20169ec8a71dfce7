import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StaleSourceError } from "../../src/bus/errors.ts";
import { cursorKey } from "../../src/bus/keys.ts";
import type { Publish, Receipt } from "../../src/bus/publish.ts";
import type { RedisBus } from "../../src/bus/redis.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { now, openTestRedis, testChannel, testEvent, testPolicy, testPublish, testTopic } from "./support.ts";

let server: RedisServer;
let redis: RedisBus;
let publish: Publish;
beforeAll(async () => {
  server = await startRedis();
  redis = await openTestRedis(server.url);
  publish = testPublish(redis);
});
afterAll(async () => {
  await redis[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

const entryIds = (receipts: readonly Receipt[]) =>
  receipts.map((receipt) => (receipt.status === "conflict" ? "conflict" : receipt.entryId));

describe("an entry", () => {
  test("stands on its topic, field by field in order", async () => {
    const channel = testChannel();
    const event = testEvent(channel, "a", { data: '{"text":"ü 😀 \\u0000","n":12345678901234567890}' });
    const { receipts } = await publish({ channel, events: [event], policy: testPolicy }, now);
    expect(await server.client.xrange(event.topic, "-", "+")).toEqual([
      [entryIds(receipts)[0], event.fields],
    ]);
  });

  test("keeps fields other than the usual ones", async () => {
    const channel = testChannel();
    const usual = testEvent(channel, "a");
    const event = { ...usual, fields: [...usual.fields.slice(0, 12), "traceparent", "00-x", "ext", "ü"] };
    await publish({ channel, events: [event], policy: testPolicy }, now);
    expect((await server.client.xrange(event.topic, "-", "+"))[0]?.[1]).toEqual(event.fields);
  });
});

describe("a known id", () => {
  test("answers with the first entry's id", async () => {
    const channel = testChannel();
    const batch = { channel, events: [testEvent(channel, "a")], policy: testPolicy };
    const first = await publish(batch, now);
    const second = await publish(batch, now);
    expect(first.receipts[0]?.status).toBe("published");
    expect(second.receipts).toEqual([{ ...first.receipts[0], status: "duplicate" }]);
    expect(await server.client.xlen(testTopic(channel))).toBe(1);
  });

  test("is one entry under 50 concurrent publishes over two connections", async () => {
    await using other = await openTestRedis(server.url);
    const publishers = [publish, testPublish(other)];
    const channel = testChannel();
    const event = testEvent(channel, "a");
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        publishers[i % 2]?.({ channel, events: [event], policy: testPolicy }, now),
      ),
    );
    const receipts = results.flatMap((result) => result?.receipts ?? []);
    expect(receipts.filter(({ status }) => status === "published")).toHaveLength(1);
    expect(new Set(entryIds(receipts)).size).toBe(1);
    expect(await server.client.xlen(event.topic)).toBe(1);
  });

  test("is reported as a conflict where its data differs, and as a duplicate where the policy says so", async () => {
    const channel = testChannel();
    const first = await publish({ channel, events: [testEvent(channel, "a")], policy: testPolicy }, now);
    const other = testEvent(channel, "a", { data: "other" });
    const reported = await publish({ channel, events: [other], policy: testPolicy }, now);
    expect(reported.receipts).toEqual([{ status: "conflict" }]);
    const policy = { ...testPolicy, onConflict: "duplicate" } as const;
    const ignored = await publish({ channel, events: [other], policy }, now);
    expect(ignored.receipts).toEqual([{ status: "duplicate", entryId: entryIds(first.receipts)[0] }]);
  });

  test("is new on another topic", async () => {
    const channel = testChannel();
    const events = [testEvent(channel, "a"), testEvent(channel, "a", { type: "other" })];
    const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
    expect(receipts.map(({ status }) => status)).toEqual(["published", "published"]);
  });

  test("is told from itself within one delivery", async () => {
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

  test("is new every time where nothing is remembered", async () => {
    const channel = testChannel();
    const events = [testEvent(channel, "a", { remembered: false })];
    const policy = { ...testPolicy, dedupeWindowMs: 0 };
    for (let i = 0; i < 2; i++) {
      expect((await publish({ channel, events, policy }, now)).receipts[0]?.status).toBe("published");
    }
    expect(await server.client.keys(`{${testTopic(channel)}}:*`)).toEqual([]);
  });
});

describe("the dedupe window", () => {
  test.each([
    700, 1300, 2000,
  ])("ends exactly %d ms after the entry, by Redis time", async (dedupeWindowMs) => {
    const channel = testChannel();
    const policy = { ...testPolicy, dedupeWindowMs };
    const batch = { channel, events: [testEvent(channel, "a")], policy };
    const msOf = (receipt: Receipt | undefined) =>
      receipt && "entryId" in receipt ? Number(receipt.entryId.split("-")[0]) : Number.NaN;
    const redisMs = async () => {
      const [seconds, micros] = await server.client.time();
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
      }
    }
    expect(await server.client.xlen(testTopic(channel))).toBe(3);
  });

  test.each([
    ["longer", 86_400_000, 5 * 86_400_000],
    ["shorter", 86_400_000, 3_600_000],
    ["longer, from a short one", 10_000, 3_600_000],
    ["shorter, to a short one", 3_600_000, 10_000],
  ])("may be made %s without forgetting what is still in it", async (_, from, to) => {
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

  test("leaves nothing behind once it has passed", async () => {
    const channel = testChannel();
    const policy = { ...testPolicy, dedupeWindowMs: 300 };
    const events = Array.from({ length: 400 }, () => testEvent(channel));
    await publish({ channel, events, policy }, now);
    const pattern = `{${testTopic(channel)}}:*`;
    expect((await server.client.keys(pattern)).length).toBeGreaterThan(3);
    const notes = `{${testTopic(channel)}}:e`;
    await until(async () => (await server.client.keys(pattern)).every((key) => key === notes));
  });
});

test("no id is lost while buckets grow to 200,000 ids", async () => {
  const channel = testChannel();
  const events = Array.from({ length: 200_000 }, (_, i) => testEvent(channel, `id-${i}`));
  const publishAll = async () => {
    const statuses = new Map<string, number>();
    for (let i = 0; i < events.length; i += 5000) {
      const { receipts } = await publish(
        { channel, events: events.slice(i, i + 5000), policy: testPolicy },
        now,
      );
      for (const { status } of receipts) statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
    return Object.fromEntries(statuses);
  };
  expect(await publishAll()).toEqual({ published: 200_000 });
  expect(await publishAll()).toEqual({ duplicate: 200_000 });
  const buckets = await server.client.keys(`{${testTopic(channel)}}:*`);
  const sizes = await Promise.all(buckets.map((key) => server.client.hlen(key)));
  const encodings = await Promise.all(buckets.map((key) => server.client.object("ENCODING", key)));
  console.log(
    `buckets ${buckets.length}, largest ${Math.max(...sizes)}, mean ${(200_000 / buckets.length).toFixed(1)}`,
  );
  expect(new Set(encodings)).toEqual(new Set(["listpack"]));
  const ends = await Promise.all(buckets.map((key) => server.client.pttl(key)));
  expect(Math.min(...ends)).toBeGreaterThan(0);
});

describe("a refused delivery", () => {
  test("has written nothing where its second topic is no stream", async () => {
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

  test("leaves those of the same tick alone", async () => {
    const channel = testChannel();
    const taken = testEvent(channel, "t", { type: "taken" });
    await server.client.set(taken.topic, "not a stream");
    const calls = Number(await commandCalls("evalsha"));
    const results = await Promise.allSettled(
      Array.from({ length: 15 }, (_, i) =>
        publish(
          { channel, events: i % 2 ? [taken, testEvent(channel)] : [testEvent(channel)], policy: testPolicy },
          now,
        ),
      ),
    );
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(8);
    expect(await server.client.xlen(testTopic(channel))).toBe(8);
    expect((await commandCalls("evalsha")) - calls).toBe(1);
  });

  test("is not sent where its signal has aborted", async () => {
    const channel = testChannel();
    const abort = new AbortController();
    const publishing = publish({ channel, events: [testEvent(channel)], policy: testPolicy }, abort);
    abort.abort(new Error("given up"));
    await expect(publishing).rejects.toThrow("given up");
    expect(await server.client.exists(testTopic(channel))).toBe(0);
  });
});

test("a large delivery goes in pieces, in order, with its quarantine and cursor", async () => {
  const channel = testChannel();
  await server.client.hset(cursorKey(channel.number), "e", 1);
  const events = Array.from({ length: 1234 }, (_, i) => testEvent(channel, `id-${i}`));
  const { receipts } = await publish(
    { channel, events, policy: testPolicy, position: { epoch: 1, version: 0, value: "end" } },
    now,
  );
  const entries = await server.client.xrange(testTopic(channel), "-", "+");
  expect(entries.map(([id]) => id)).toEqual(entryIds(receipts));
  expect(entries.map(([, fields]) => fields[3])).toEqual(events.map(({ id }) => id));
  expect(await server.client.hgetall(cursorKey(channel.number))).toMatchObject({ v: "1", c: "end" });
});

test("an event larger than a script's share is published", async () => {
  const channel = testChannel();
  const data = "x".repeat(6 * 1024 * 1024);
  const events = [testEvent(channel, "a"), testEvent(channel, "b", { data }), testEvent(channel, "c")];
  const { receipts } = await publish({ channel, events, policy: testPolicy }, now);
  expect(receipts.map(({ status }) => status)).toEqual(["published", "published", "published"]);
});

describe("a pull source", () => {
  const position = (epoch: number, version: number) => ({ epoch, version, value: `at ${version}` });
  const cursorOf = (channel: { readonly number: number }) => server.client.hgetall(cursorKey(channel.number));

  async function ownedChannel(epoch: number) {
    const channel = testChannel();
    await server.client.hset(cursorKey(channel.number), "e", epoch);
    return channel;
  }

  test("commits its cursor with the events, by compare-and-set", async () => {
    const channel = await ownedChannel(1);
    const batch = (id: string, version: number) => ({
      channel,
      events: [testEvent(channel, id)],
      policy: testPolicy,
      position: position(1, version),
    });
    await publish(batch("a", 0), now);
    await publish(batch("b", 1), now);
    const stale = publish(batch("c", 1), now);
    await expect(stale).rejects.toBeInstanceOf(StaleSourceError);
    await expect(stale).rejects.toMatchObject({ stale: "cursor" });
    expect(await server.client.xlen(testTopic(channel))).toBe(2);
    expect(await cursorOf(channel)).toMatchObject({ e: "1", v: "2", c: "at 1" });
  });

  test("is refused once another has taken it over, or its cursor is gone", async () => {
    const channel = await ownedChannel(7);
    const events = [testEvent(channel)];
    const write = (epoch: number) =>
      publish({ channel, events, policy: testPolicy, position: position(epoch, 0) }, now);
    await expect(write(6)).rejects.toMatchObject({ name: "StaleSourceError", stale: "epoch" });
    await server.client.del(cursorKey(channel.number));
    await expect(write(7)).rejects.toMatchObject({ stale: "epoch" });
    expect(await server.client.exists(testTopic(channel))).toBe(0);
  });

  test("moves its cursor past a delivery without events", async () => {
    const channel = await ownedChannel(1);
    await publish({ channel, events: [], policy: testPolicy, position: position(1, 0) }, now);
    expect(await cursorOf(channel)).toMatchObject({ v: "1", c: "at 0" });
  });

  test("makes a new version where the cursor stays, so that what was sent after a refused delivery is refused", async () => {
    const channel = await ownedChannel(1);
    const write = (id: string, version: number) =>
      publish(
        { channel, events: [testEvent(channel, id)], policy: testPolicy, position: { epoch: 1, version } },
        now,
      );
    await write("a", 0);
    await expect(write("c", 2)).rejects.toMatchObject({ stale: "cursor" });
    expect(await cursorOf(channel)).toEqual({ e: "1", v: "1" });
  });

  test("keeps its cursor where an event conflicts, whatever piece it is in", async () => {
    const channel = await ownedChannel(1);
    await publish({ channel, events: [testEvent(channel, "id-3")], policy: testPolicy }, now);
    const events = Array.from({ length: 600 }, (_, i) => testEvent(channel, `id-${i}`, { data: "other" }));
    const write = (some: typeof events) =>
      publish({ channel, events: some, policy: testPolicy, position: position(1, 0) }, now);
    for (const some of [events.slice(0, 10), events]) {
      expect((await write(some)).receipts[3]).toEqual({ status: "conflict" });
      expect(await cursorOf(channel)).toEqual({ e: "1" });
    }
  });
});

test("a script that Redis has forgotten is sent again", async () => {
  const channel = testChannel();
  await server.client.script("FLUSH");
  const results = await Promise.all(
    [1, 2, 3].map(() => publish({ channel, events: [testEvent(channel)], policy: testPolicy }, now)),
  );
  expect(results.map(({ receipts }) => receipts[0]?.status)).toEqual(["published", "published", "published"]);
});

test("a stream is trimmed to its entries while it is appended to", async () => {
  const channel = testChannel();
  const policy = { ...testPolicy, maxEntries: 500 };
  const events = Array.from({ length: 3000 }, () => testEvent(channel));
  await publish({ channel, events, policy }, now);
  expect(await server.client.xlen(testTopic(channel))).toBeLessThan(700);
});

async function commandCalls(command: string): Promise<number> {
  const stats = await server.client.info("commandstats");
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}
