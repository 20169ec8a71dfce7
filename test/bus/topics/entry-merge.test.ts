import { setImmediate as nextIteration } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createEntryIndex } from "../../../src/bus/topics/entry-index.ts";
import { mergeEntries, mergeNewest, openNewest } from "../../../src/bus/topics/entry-merge.ts";
import { opened } from "../../support/opened.ts";
import { openedBus } from "../support.ts";

const ALL = { from: "-", to: "+" };
const { server, redis } = openedBus();
const entries = opened(() => createEntryIndex({ redis }));
let lists = 0;

interface Place {
  readonly topic: string;
  readonly entryId: string;
}

/** Adds entries to new topics. Returns the topics, and the entries in the order of a merge. */
async function givenTopics(
  count: number,
  idsOf: (topic: number) => readonly string[],
  dataOf: (n: number) => string = () => "{}",
): Promise<{ readonly topics: readonly string[]; readonly places: readonly Place[] }> {
  const prefix = `merged.${lists++}.`;
  const topics = Array.from({ length: count }, (_, n) => `${prefix}${String(n).padStart(5, "0")}`);
  const pipeline = server.client.pipeline();
  const added = topics.flatMap((topic, n) => idsOf(n).map((entryId) => ({ topic, entryId })));
  for (const [n, { topic, entryId }] of added.entries())
    pipeline.xadd(topic, entryId, "id", `${topic}/${entryId}`, "data", dataOf(n));
  await pipeline.exec();
  const numbers = (id: string): readonly number[] => id.split("-").map(Number);
  const places = added.toSorted((a, b) => {
    const [aMs = 0, aSequence = 0] = numbers(a.entryId);
    const [bMs = 0, bSequence = 0] = numbers(b.entryId);
    return aMs - bMs || aSequence - bSequence || (a.topic < b.topic ? -1 : 1);
  });
  return { topics, places };
}

async function collect(listed: AsyncIterable<Place>): Promise<readonly Place[]> {
  const places: Place[] = [];
  for await (const { topic, entryId } of listed) places.push({ topic, entryId });
  return places;
}

/** Ids of a topic that are spread over all topics, with ties. */
const spread =
  (count: number, topics: number) =>
  (topic: number): readonly string[] =>
    Array.from({ length: count }, (_, n) => `${1_000 + n * topics + ((topic * 7) % topics)}-${topic % 2}`);

describe("the merge of the entries of several topics", () => {
  it.each<[string, number, (topic: number) => readonly string[]]>([
    ["many topics with few entries each", 700, spread(3, 700)],
    ["few topics with many entries each", 2, spread(1_300, 2)],
    ["topics with the same entry ids", 90, () => ["5-0", "5-1", "6-0", "12-0"]],
    [
      "one topic with many entries among many topics with few",
      150,
      (topic) => spread(topic === 7 ? 900 : topic % 3, 150)(topic),
    ],
  ])("lists %s in both orders, and continues after any entry", async (_, count, idsOf) => {
    const { topics, places } = await givenTopics(count, idsOf);
    const reversed = places.toReversed();
    expect(await collect(mergeEntries(entries, topics, ALL))).toEqual(places);
    expect(await collect(mergeNewest(entries, topics, ALL))).toEqual(reversed);
    for (const at of [0, 1, 63, Math.floor(places.length / 2), places.length - 1]) {
      const { total, places: rest } = await openNewest(entries, topics, ALL, {
        after: reversed[at],
        skips: true,
      });
      expect(total).toBe(places.length);
      expect(await collect(rest)).toEqual(reversed.slice(at + 1));
      expect(await collect(mergeEntries(entries, topics, ALL, places[at]))).toEqual(places.slice(at + 1));
    }
    const range = { from: "1100", to: "1500" };
    const inRange = places.filter(
      ({ entryId }) => Number.parseInt(entryId, 10) >= 1_100 && Number.parseInt(entryId, 10) <= 1_500,
    );
    expect(await collect(mergeEntries(entries, topics, range))).toEqual(inRange);
    expect(await collect(mergeNewest(entries, topics, range))).toEqual(inRange.toReversed());
  });

  it("lists large entries among small ones", async () => {
    const large = "x".repeat(600_000);
    const dataOf = (n: number): string => (n % 9 === 8 ? large : "{}");
    const { topics, places } = await givenTopics(3, spread(20, 3), dataOf);
    expect(await collect(mergeEntries(entries, topics, ALL))).toEqual(places);
    expect(await collect(mergeNewest(entries, topics, ALL))).toEqual(places.toReversed());
    const read = await Array.fromAsync(entries.read(mergeNewest(entries, topics, ALL)));
    expect(read.map(({ entry }) => entry?.fields.id)).toEqual(
      places.toReversed().map(({ topic, entryId }) => `${topic}/${entryId}`),
    );
  });

  it("lists no entries of empty and unknown topics", async () => {
    const { topics, places } = await givenTopics(4, (topic) => (topic === 2 ? ["1-0"] : []));
    expect(await collect(mergeNewest(entries, topics, ALL))).toEqual(places);
    expect(await collect(mergeEntries(entries, [], ALL))).toEqual([]);
    expect(await collect(mergeNewest(entries, [], ALL))).toEqual([]);
  });
});

describe("reading the entries of a merge", () => {
  it.each<[string, number, (topic: number) => readonly string[]]>([
    ["many topics", 300, spread(3, 300)],
    ["one topic", 1, spread(1_000, 1)],
  ])("reads the entries of %s in the order of the merge, whatever the first batch", async (_, count, idsOf) => {
    const { topics, places } = await givenTopics(count, idsOf);
    const ids = places.map(({ topic, entryId }) => `${topic}/${entryId}`);
    for (const first of [1, 100, undefined]) {
      const options = first === undefined ? {} : { first };
      const newest = await Array.fromAsync(entries.read(mergeNewest(entries, topics, ALL), options));
      expect(newest.map(({ entry }) => entry?.fields.id)).toEqual(ids.toReversed());
      const oldest = await Array.fromAsync(entries.read(mergeEntries(entries, topics, ALL), options));
      expect(oldest.map(({ entry }) => entry?.fields.id)).toEqual(ids);
    }
  });

  it("reports entries without content that were deleted after they were listed", async () => {
    const { topics, places } = await givenTopics(2, spread(6, 2));
    const listed = await Array.fromAsync(mergeNewest(entries, topics, ALL));
    const deleted = new Set([0, 3, 4, 11]);
    for (const [n, { topic, entryId }] of listed.entries())
      if (deleted.has(n)) await server.client.xdel(topic, entryId);
    const read = await Array.fromAsync(entries.read(listed));
    expect(read.map(({ topic, entryId }) => ({ topic, entryId }))).toEqual(places.toReversed());
    expect(read.flatMap(({ entry }, n) => (entry === undefined ? [n] : []))).toEqual([...deleted]);
  });

  it("continues while entries are added and deleted", async () => {
    const { topics, places } = await givenTopics(3, spread(500, 3));
    const expected = places.toReversed();
    const seen: Place[] = [];
    for await (const { topic, entryId } of entries.read(mergeNewest(entries, topics, ALL), { first: 10 })) {
      seen.push({ topic, entryId });
      if (seen.length === 5)
        for (const [n, one] of topics.entries()) await server.client.xadd(one, `900000-${n}`, "id", "new");
      if (seen.length === 900) for (const one of topics) await server.client.xtrim(one, "MINID", "1200");
    }
    // Newer entries come first, so they are not in the rest of the list. Deleted ones may have been listed already.
    expect(seen).toEqual(expected.slice(0, seen.length));
    const kept = expected.filter(({ entryId }) => Number.parseInt(entryId, 10) >= 1_200);
    expect(seen.length).toBeGreaterThanOrEqual(kept.length);
  });

  it("reads nothing further after the caller has stopped", async () => {
    const { topics } = await givenTopics(1, spread(2_000, 1));
    const [first, batch] = [20, 256];
    let listed = 0;
    // The third batch is listed slowly, so that the caller stops while the reader lists it ahead.
    async function* listSlowly() {
      for await (const place of mergeNewest(entries, topics, ALL)) {
        if (++listed > first + batch) await nextIteration();
        yield place;
      }
    }
    let read = 0;
    for await (const _ of entries.read(listSlowly(), { first })) if (++read > first) break;
    for (let iteration = 0; iteration < 10 * batch; iteration++) await nextIteration();
    expect(listed).toBeGreaterThanOrEqual(first + batch);
    expect(listed).toBeLessThan(first + 2 * batch);
  });

  it("lets other work run while the caller processes entries for long", async () => {
    const { topics } = await givenTopics(1, spread(200, 1));
    let iterations = 0;
    let isReading = true;
    const count = (): void => {
      iterations++;
      if (isReading) setImmediate(count);
    };
    let atStart: number | undefined;
    for await (const _ of entries.read(mergeNewest(entries, topics, ALL))) {
      if (atStart === undefined) {
        setImmediate(count);
        atStart = iterations;
      }
      for (const until = performance.now() + 1; performance.now() < until; );
    }
    isReading = false;
    // 200 entries of 1 ms each, in slices of at most 5 ms and the time of one entry.
    expect(iterations).toBeGreaterThanOrEqual(30);
  });
});
