import { describe, expect, it } from "vitest";
import { ageCounts } from "../../../src/data/series/age-counts.ts";
import { createPendingCounts } from "../../../src/data/series/pending-counts.ts";
import { readChannelTotals, readSeries } from "../../../src/data/series/read-series.ts";
import { createSeriesIds, formatSeriesKey, type SeriesName } from "../../../src/data/series/series-names.ts";
import { startSeriesWriter } from "../../../src/data/series/series-writer.ts";
import { type SeriesCount, writeCounts } from "../../../src/data/series/write-counts.ts";
import { createLog } from "../../../src/log.ts";
import { countLatency, countType, createEventCounts } from "../../../src/metrics/event-counts.ts";
import {
  estimatePercentileMs,
  LATENCY_BUCKETS,
  toLatencyBucket,
} from "../../../src/metrics/latency-buckets.ts";
import { createMetrics } from "../../../src/metrics.ts";
import { opened } from "../../support/opened.ts";
import { createTestDatabase } from "../../support/postgres.ts";

const database = opened(() => createTestDatabase());
const { db } = database;
const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 5, 15, 12, 30);
const { signal } = new AbortController();
const log = createLog({ level: "silent" });

let organizations = 0;
async function createOrganization(): Promise<string> {
  const id = `org_${++organizations}`;
  const at = new Date();
  await db.insertInto("organizations").values({ id, name: id, createdAt: at, updatedAt: at }).execute();
  return id;
}

const nameOf = (organizationId: string, channel: string, type = ""): SeriesName => ({
  organizationId,
  appId: "app_1",
  channel,
  type,
});

async function resolve(names: readonly SeriesName[]): Promise<readonly (number | undefined)[]> {
  const ids = await createSeriesIds(db).resolve(new Map(names.map((name) => [formatSeriesKey(name), name])));
  return names.map((name) => ids.get(formatSeriesKey(name)));
}

const countOf = (seriesId: number, minuteMs: number, count = 1, metric = "received"): SeriesCount => ({
  seriesId,
  metric,
  minuteMs,
  detail: "",
  count,
  buckets: undefined,
});

async function sum(organizationId: string, fromMs: number, toMs: number): Promise<number> {
  const query = { metric: "received", fromMs, toMs, stepMs: HOUR_MS } as const;
  const points = await readSeries(db, { organizationId }, query);
  return points.reduce((total, [, value]) => total + (value ?? 0), 0);
}

describe("writes of counts", () => {
  it("add each count once, even if a committed write is repeated", async () => {
    const organizationId = await createOrganization();
    const [id = 0] = await resolve([nameOf(organizationId, "a")]);
    const write = { writer: "w1", sequence: 1, counts: [countOf(id, NOW_MS, 5)] };
    await Promise.all([writeCounts(db, write), writeCounts(db, write), writeCounts(db, write)]);
    await writeCounts(db, write);
    await writeCounts(db, { ...write, sequence: 2 });
    await writeCounts(db, { ...write, writer: "w2" });
    expect(await sum(organizationId, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS)).toBe(15);
  });

  it("add all counts once when many processes write at the same time", async () => {
    const organizationId = await createOrganization();
    const names = Array.from({ length: 40 }, (_, n) => nameOf(organizationId, `c${n}`));
    const ids = await resolve(names);
    const counts = ids.map((id = 0) => countOf(id, NOW_MS));
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => {
        const shuffled = counts.toSorted(() => Math.random() - 0.5);
        return writeCounts(db, { writer: `many${n % 5}-${n}`, sequence: 1, counts: shuffled });
      }),
    );
    expect(await sum(organizationId, NOW_MS - HOUR_MS, NOW_MS + HOUR_MS)).toBe(40 * 30);
  });

  it("add up the series of an organization beyond the first 2,000, and drop counts of a deleted organization", async () => {
    const organizationId = await createOrganization();
    const names = Array.from({ length: 1_100 }, (_, n) => n).flatMap((n) => [
      nameOf(organizationId, `c${n}`),
      nameOf(organizationId, `c${n}`, "e"),
    ]);
    const [first, second] = await Promise.all([resolve(names.slice(0, 1_500)), resolve(names.slice(1_000))]);
    const distinct = new Set([...first, ...second]);
    expect(distinct.size).toBe(2_001);
    const stored = await db
      .selectFrom("series")
      .select(["channel"])
      .where("organizationId", "=", organizationId)
      .where("appId", "=", "other")
      .execute();
    expect(stored).toEqual([{ channel: "other" }]);
    const [id = 0] = first;
    await db.deleteFrom("organizations").where("id", "=", organizationId).execute();
    await writeCounts(db, { writer: "deleted", sequence: 1, counts: [countOf(id, NOW_MS)] });
    expect(await resolve([nameOf(organizationId, "c0")])).toEqual([undefined]);
  });
});

describe("stored counts", () => {
  it("move to hours after 48 hours and disappear after 90 days, and their sums stay the same until then", async () => {
    const organizationId = await createOrganization();
    const [id = 0] = await resolve([nameOf(organizationId, "a")]);
    const day = 24 * HOUR_MS;
    const times = [1, 10 * HOUR_MS, 2 * day + HOUR_MS, 2 * day + HOUR_MS + 60_000, 30 * day, 91 * day].map(
      (ageMs) => Math.floor((NOW_MS - ageMs) / 60_000) * 60_000,
    );
    const buckets = [1, 2];
    const counts = times.flatMap((at) => [countOf(id, at, 7), { ...countOf(id, at, 3, "latency"), buckets }]);
    await writeCounts(db, { writer: "aging", sequence: 1, counts });
    const all = () => sum(organizationId, NOW_MS - 100 * day, NOW_MS + day);
    expect(await all()).toBe(42);
    await Promise.all([ageCounts(db, NOW_MS, { signal }), ageCounts(db, NOW_MS, { signal })]);
    expect(await all()).toBe(35);
    // A late write to a minute that was already moved is moved by the next run.
    await writeCounts(db, { writer: "aging", sequence: 2, counts: [countOf(id, times[2] ?? 0, 1)] });
    await ageCounts(db, NOW_MS, { signal });
    expect(await all()).toBe(36);
    const minutes = await db
      .selectFrom("seriesMinutes")
      .select("minute")
      .where("seriesId", "=", id)
      .execute();
    expect(minutes).toHaveLength(4);
    const [hour] = await db
      .selectFrom("seriesHours")
      .selectAll()
      .where("seriesId", "=", id)
      .where("metric", "=", "latency")
      .orderBy("hour", "desc")
      .execute();
    expect(hour).toMatchObject({ count: 6, buckets: [2, 4] });
  });

  it("are only read by their own organization, with the sums of each channel", async () => {
    const [one, other] = [await createOrganization(), await createOrganization()];
    const [id = 0, typed = 0] = await resolve([nameOf(one, "a"), nameOf(one, "a", "t")]);
    const counts = [countOf(id, NOW_MS, 4), countOf(typed, NOW_MS, 3, "published")];
    await writeCounts(db, { writer: "own", sequence: 1, counts });
    const range = { fromMs: NOW_MS - HOUR_MS, toMs: NOW_MS + HOUR_MS };
    const totals = await readChannelTotals(db, { organizationId: one }, range, 4);
    expect(totals).toMatchObject([{ channel: "a", received: 4, published: 3, trend: [0, 0, 4, 0] }]);
    expect(await readChannelTotals(db, { organizationId: other }, range, 4)).toEqual([]);
    expect(await sum(other, range.fromMs, range.toMs)).toBe(0);
  });
});

describe("the writer", () => {
  it("keeps counts while PostgreSQL is unavailable, and then writes each of them once", async () => {
    const organizationId = await createOrganization();
    await using own = await createTestDatabase();
    const at = new Date();
    await own.db
      .insertInto("organizations")
      .values({ id: organizationId, name: "own", createdAt: at, updatedAt: at })
      .execute();
    const metrics = createMetrics();
    await using writer = startSeriesWriter({
      db: own.db,
      metrics,
      clock: () => NOW_MS,
      log,
      everyMs: 3_600_000,
    });
    const channel = { number: 1, uid: "a", appId: "app_1", organizationId };
    const count = () => {
      metrics.countsOf(channel).received++;
      countType(metrics.countsOf(channel), "t").published += 2;
    };
    count();
    await own.cutOff();
    await expect(writer.write()).rejects.toThrow("PostgreSQL");
    count();
    // A scrape takes the counts too.
    expect(await metrics.registry.metrics()).toContain(
      'inlet_channel_events_total{app="app_1",channel="a",outcome="published"} 4',
    );
    await expect(writer.write()).rejects.toThrow("PostgreSQL");
    await own.restore();
    count();
    await writer.write();
    await writer.write();
    const range = { fromMs: NOW_MS - HOUR_MS, toMs: NOW_MS + HOUR_MS };
    expect(await readChannelTotals(own.db, { organizationId }, range, 1)).toMatchObject([
      { received: 3, published: 6, trend: [3] },
    ]);
  });

  it("limits its memory: it first gives up the minutes, then counts of further series", () => {
    let lost = 0;
    const pending = createPendingCounts({ onLost: (count) => (lost += count), maxPending: 2, maxHeld: 3 });
    const receive = (uid: string, minute: number) => {
      const counts = createEventCounts((taken) => pending.add(taken, minute * 60_000));
      counts.countsOf({ number: 1, uid, appId: "a", organizationId: "o" }).received = 5;
      counts.take();
    };
    for (const minute of [1, 2, 3, 4]) receive("a", minute);
    expect(pending.peek(9).map(({ minuteMs, count }) => [minuteMs / 60_000, count])).toEqual([
      [1, 5],
      [2, 15],
    ]);
    receive("b", 5);
    receive("c", 5);
    receive("a", 5);
    expect([pending.size(), pending.total(), lost]).toEqual([3, 30, 5]);
  });
});

describe("percentiles", () => {
  it("differ by at most 9.1 % from the true value", () => {
    const counts = createEventCounts(() => {}).countsOf({
      number: 1,
      uid: "u",
      appId: "a",
      organizationId: "o",
    });
    for (let ms = 0.3; ms < 60_000; ms *= 1.013) {
      const bucket = new Array(LATENCY_BUCKETS).fill(0).with(toLatencyBucket(ms), 1);
      const estimate = estimatePercentileMs(bucket, 0.5) ?? 0;
      expect(Math.max(estimate / ms, ms / estimate)).toBeLessThan(1.095);
      countLatency(counts, ms);
    }
    expect(toLatencyBucket(Number.MAX_VALUE)).toBe(LATENCY_BUCKETS - 1);
    expect(estimatePercentileMs([0, 0], 0.5)).toBeNull();
    expect(estimatePercentileMs([...(counts.latency ?? [])], 1)).toBeGreaterThan(50_000);
  });
});
