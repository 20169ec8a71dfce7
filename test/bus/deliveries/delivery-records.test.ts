import { expect, test } from "vitest";
import {
  createDeliveryRecords,
  type NewDeliveryRecord,
} from "../../../src/bus/deliveries/delivery-records.ts";
import type { ChannelIdentity } from "../../../src/event/channel.ts";
import { createId } from "../../../src/lib/ids.ts";
import { opened } from "../../support/opened.ts";
import { openedBus, testChannel } from "../support.ts";

const { server, redis } = openedBus();
const limits = { records: 3, channelBytes: 20_000, organizationBytes: 25_000, keepMs: 60_000 };
const records = opened(() => createDeliveryRecords({ redis, limits }));

let arrivals = Date.now() - 10_000;

function createRecord(channel: ChannelIdentity, bodyBytes = 10): NewDeliveryRecord {
  const receivedAtMs = ++arrivals;
  const { number, uid, appId, organizationId } = channel;
  return {
    record: {
      id: createId("del", receivedAtMs),
      channelNumber: number,
      channelUid: uid,
      appId,
      organizationId,
      receivedAtMs,
      bodyBytes,
      requestId: "req-1",
      clientAddress: null,
      method: "POST",
      headers: {},
      query: {},
      durationMs: 1,
      status: "published",
      httpStatus: 200,
      reason: null,
      hasBody: true,
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
    body: Buffer.alloc(bodyBytes, 0xff),
  };
}

const idsOf = async ({ organizationId, number }: ChannelIdentity) =>
  (await records.list(organizationId, [number])).map(({ id }) => id);
const recordKeys = ({ organizationId }: ChannelIdentity) =>
  server.client.keys(`inlet:{d.${organizationId}}:r:*`);

test("the store of delivery records keeps the newest records of a channel and deletes older ones with their keys", async () => {
  const channel = testChannel();
  const made = Array.from({ length: 5 }, () => createRecord(channel));
  expect(await records.write(made)).toBe(5);
  expect(await idsOf(channel)).toEqual(made.slice(2).map(({ record }) => record.id));
  expect(await recordKeys(channel)).toHaveLength(3);
  expect(await records.find(channel.organizationId, made[4]?.record.id ?? "")).toEqual(made[4]);
});

test("the store of delivery records deletes a channel's oldest records when their total size exceeds the channel's byte limit", async () => {
  const channel = testChannel();
  const [first, second] = [createRecord(channel, 8_000), createRecord(channel, 8_000)];
  expect(await records.write([first, second])).toBe(2);
  expect(await idsOf(channel)).toEqual([second.record.id]);
  expect(await records.write([createRecord(channel, 30_000)])).toBe(0);
});

test("the store of delivery records rejects new records at the organization's byte limit, until a purge frees bytes", async () => {
  const one = testChannel();
  const other = { ...testChannel(), organizationId: one.organizationId };
  const unrelated = testChannel();
  await records.write([createRecord(one, 10_000), createRecord(unrelated, 10_000)]);
  const held = await records.readBytes(one.organizationId);
  expect(held).toBeGreaterThan(13_000);
  expect(await records.write([createRecord(other, 10_000)])).toBe(0);
  await records.purge(one.organizationId, one.number);
  expect(await records.readBytes(one.organizationId)).toBe(0);
  expect(await records.write([createRecord(other, 10_000)])).toBe(1);
  expect(await idsOf(unrelated)).toHaveLength(1);
});

test("the store of delivery records sets an expiry on each of its Redis keys", async () => {
  const channel = testChannel();
  await records.write([createRecord(channel)]);
  for (const key of await server.client.keys(`inlet:{d.${channel.organizationId}}:*`)) {
    expect(await server.client.pttl(key)).toBeGreaterThan(0);
    expect(await server.client.pttl(key)).toBeLessThanOrEqual(limits.keepMs);
  }
  // Simulates an expired index: its records must no longer be counted.
  await server.client.del(`inlet:{d.${channel.organizationId}}:x:${channel.number}`);
  expect(await records.readBytes(channel.organizationId)).toBe(0);
});

test("the store of delivery records drops buffered records of a channel after a deletion in this channel, but accepts records of other channels", async () => {
  const channel = testChannel();
  const other = { ...testChannel(), organizationId: channel.organizationId };
  const [gone, kept] = [createRecord(channel), createRecord(channel)];
  await records.write([gone, kept]);
  await records.delete(channel.organizationId, channel.number, [gone.record.id]);
  expect(await idsOf(channel)).toEqual([kept.record.id]);
  expect(await records.find(channel.organizationId, gone.record.id)).toBeUndefined();
  expect(await records.write([createRecord(channel), createRecord(other)])).toBe(1);
  await server.client.del(`inlet:{d.${channel.organizationId}}:g:${channel.number}`);
  expect(await records.write([createRecord(channel)])).toBe(1);
});

test("the store of delivery records lists the newest records of many channels, in pages without gaps", async () => {
  const { organizationId } = testChannel();
  const many = createDeliveryRecords({ redis });
  const startMs = Date.now() - 600_000;
  const channels = Array.from({ length: 250 }, () => ({ ...testChannel(), organizationId }));
  const made = channels.flatMap((channel, n) =>
    [0, 1].map((at) => {
      const { record, ...rest } = createRecord(channel);
      // Several records have the same time, also across pages.
      const receivedAtMs = startMs + Math.floor((n + 250 * at) / 7);
      const id = createId("del", receivedAtMs);
      const status = n % 50 === 0 ? ("refused" as const) : ("published" as const);
      return { ...rest, record: { ...record, id, receivedAtMs, status, requestId: `req-${n}-${at}` } };
    }),
  );
  await many.write(made);
  const channelNumbers = channels.map(({ number }) => number);
  const newest = made
    .map(({ record }) => record)
    .sort((a, b) => b.receivedAtMs - a.receivedAtMs || (a.id < b.id ? 1 : -1));
  const ids = (listed: readonly { readonly id: string }[]) => listed.map(({ id }) => id);
  const pages: string[] = [];
  for (let after: { readonly score: number; readonly id: string } | undefined; ; ) {
    const { records, total } = await many.listNewest(organizationId, { channelNumbers, limit: 33, after });
    expect(total).toBe(500);
    pages.push(...ids(records));
    const last = records.at(-1);
    if (last === undefined) break;
    after = { score: last.receivedAtMs, id: last.id };
  }
  expect(pages).toEqual(ids(newest));

  const refused = newest.filter(({ status }) => status === "refused");
  const list = (query: object) => many.listNewest(organizationId, { channelNumbers, limit: 4, ...query });
  expect(await list({ status: "refused" })).toMatchObject({ total: 10 });
  expect(ids((await list({ status: "refused" })).records)).toEqual(ids(refused.slice(0, 4)));
  expect(ids((await list({ requestId: "req-3-1" })).records)).toEqual(
    ids(newest.filter(({ requestId }) => requestId === "req-3-1")),
  );
  const [from, to] = [startMs + 10, startMs + 12];
  const within = newest.filter(({ receivedAtMs }) => receivedAtMs >= from && receivedAtMs < to);
  expect(await list({ from, to })).toMatchObject({ total: within.length });
  expect(ids((await list({ from, to })).records)).toEqual(ids(within.slice(0, 4)));
  const few = channels.slice(0, 2).map(({ number }) => number);
  expect((await list({ channelNumbers: few })).total).toBe(4);
  expect(await many.listNewest(testChannel().organizationId, { channelNumbers, limit: 4 })).toEqual({
    records: [],
    total: 0,
  });
});
