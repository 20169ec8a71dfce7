import { describe, expect, it } from "vitest";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { json, status } from "./answer-server.ts";
import { at, openedPositions, SINCE } from "./positions-support.ts";
import type { Config } from "./support.ts";

const { clock, pollEach, queries, rigOf, server } = openedPositions();

describe("polling by timestamp", () => {
  const discriminator = { by: "timestamp", path: "$.at" } as const;

  it("requests items from the latest timestamp on, and does not publish known items with that timestamp again", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    expect(
      await pollEach(rig, [at(1), at(2, "a")], [at(2, "a"), at(2, "b")], [at(2, "b"), at(2, "a")]),
    ).toEqual(["1", "a", "b"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:02.000Z");
  });

  it("warns after several polls in a row that return only items older than the cursor", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    const { source } = rig;
    const { signal } = new AbortController();
    const warned = async (...items: unknown[]) => {
      server.answers = [json(items)];
      await source.poll(rig.run(signal));
      return rig.warnings.splice(0);
    };
    expect(await warned(at(5))).toEqual([]);
    for (let i = 0; i < 2; i++) expect(await warned(at(1), at(2))).toEqual([]);
    expect(await warned(at(5))).toEqual([]);
    for (let i = 0; i < 2; i++) expect(await warned(at(1))).toEqual([]);
    for (let i = 0; i < 2; i++) expect(await warned(at(3))).toEqual(["behind_cursor"]);
    expect(await warned()).toEqual([]);
    expect(await warned(at(3))).toEqual([]);
  });

  it("requests items from a configured time before the cursor on, and publishes only items that arrived late", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, lookBackSeconds: 10 } }, SINCE);
    const late = [at(15), at(20), at(12)];
    expect(await pollEach(rig, [at(15), at(20)], late, late)).toEqual(["15", "20", "12"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:10.000Z");
    expect(await pollEach(rig, [at(9)])).toHaveLength(3);
  });

  it("starts at the current time, at a given time or at the earliest item, depending on `startAt`", async () => {
    const start = (startAt: Config["startAt"]) =>
      rigOf({ discriminator: { ...discriminator, lookBackSeconds: 60 }, startAt }, SINCE);
    await pollEach(start("now"), []);
    expect(await pollEach(start({ value: at(2).at }), [at(1), at(2), at(3)])).toEqual(["2", "3"]);
    expect(await pollEach(start("earliest"), [at(1)])).toEqual(["1"]);
    expect(queries()).toEqual([
      "since=2026-01-31T12:00:00.000Z",
      "since=2026-01-31T10:00:02.000Z",
      "since=1970-01-01T00:00:00.000Z",
    ]);
  });

  it("publishes an item again if its version has changed", async () => {
    const rig = rigOf({ discriminator, versionPath: "$.at" }, SINCE);
    expect(await pollEach(rig, [at(1, "a")], [at(2, "a")])).toEqual([`a/${at(1).at}`, `a/${at(2).at}`]);
  });

  it.each<[string, unknown]>([
    ["missing", { id: "x" }],
    ["unreadable", { id: "x", at: "yesterday" }],
    ["far in the future", { id: "x", at: "2126-01-01T00:00:00Z" }],
    ["ambiguous", { id: "x", at: ["a", "b"] }],
  ])("publishes an item whose timestamp is %s once, and does not move the cursor to this timestamp", async (_, stray) => {
    const rig = rigOf({ discriminator }, SINCE);
    const pages = [[at(1), stray], [at(1), stray], [at(2), stray], [stray], [at(3)]];
    expect((await pollEach(rig, ...pages)).toSorted()).toEqual(["1", "2", "3", "x"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:02.000Z");
  });

  it("does not publish an item with a future timestamp again once that time has passed", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    const ahead = { id: "x", at: new Date(clock.nowMs + 2 * 86_400_000).toISOString() };
    await pollEach(rig, [at(1), ahead]);
    for (let days = 0; days < 4; days++) {
      clock.nowMs += 43_200_000;
      await pollEach(rig, [at(1), ahead], [ahead]);
    }
    expect(rig.log.map(({ id }) => id)).toEqual(["1", "x"]);
  });

  it("fails if 50,000 items have the same timestamp, because the cursor cannot store more item keys", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    const place = String(Date.parse(at(1).at));
    const keys = Array.from({ length: 49_999 }, (_, key) => String(key).padStart(22, "k")).join("");
    rig.cursor = JSON.stringify({ by: "timestamp", position: { at: place, keys: [[place, keys]] } });
    server.answers = [json([at(1, "a"), at(1, "b")])];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "position_full" });
    expect(rig.log).toEqual([]);
    expect(await pollEach(rig, [at(1, "a"), at(1, "b"), at(2, "c")])).toEqual(["a", "b", "c"]);
    expect(rig.cursor?.length).toBeLessThan(200);
  });
});

describe("polling an API with page numbers or offsets", () => {
  it.each([
    "offset",
    "page",
  ] as const)("(%s) skips no item if an earlier item is deleted between two page requests", async (by) => {
    await using upstream = await PollUpstream.start();
    upstream.clear({ paging: by });
    const pagination = { by, param: by, pageSize: 3 };
    const discriminator = { by: "timestamp", path: "$.at" } as const;
    const request = { url: `${upstream.origin}/rows`, query: SINCE };
    const rig = rigOf({ discriminator, pagination, request, itemsPath: "$.rows" });
    for (let row = 1; row <= 6; row++) upstream.insert();
    upstream.nowMs += 1000;
    upstream.insert();
    // The first six items share a timestamp, so the walk restarts there. The deletion before its second page moves the fourth item to the
    // first page. Three requests check the order of the first two pages, and the fourth restarts the walk.
    const deletion = { kind: "do", change: () => upstream.delete("r00001") } as const;
    upstream.faults = [undefined, undefined, undefined, undefined, deletion];
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(rig.log.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `r0000${n}`));
  });
});

describe("polling by sequence number", () => {
  const discriminator = { by: "sequence", path: "$.id" } as const;

  it("compares numbers of any size exactly, whether the JSON contains numbers or strings", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    const big = "9007199254740993000000000001";
    const pages = [
      `[{"id":9},{"id":10}]`,
      `[{"id":${big}},{"id":"${big.slice(0, -1)}2"}]`,
      `[{"id":${big}}]`,
    ];
    expect(await pollEach(rig, ...pages)).toEqual(["9", "10", big, `${big.slice(0, -1)}2`]);
    expect(queries()).toEqual(["", "since=10", `since=${big.slice(0, -1)}2`]);
  });

  it("compares text values by UTF-16 code units", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, compare: "text" } });
    expect(await pollEach(rig, [{ id: "b" }], [{ id: "B" }, { id: "ba" }, { id: "b" }])).toEqual(["b", "ba"]);
  });

  it("requests a window of numbers below the cursor again, so that numbers assigned late are not missed", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, lookBack: 3 } }, SINCE);
    const ids = (...all: number[]) => all.map((id) => ({ id }));
    expect(await pollEach(rig, ids(5, 7), ids(3, 4, 5, 6, 7), ids(4, 5, 6, 7))).toEqual(["5", "7", "4", "6"]);
    expect(queries().at(-1)).toBe("since=4");
  });

  it("moves the cursor one poll later if pages are unordered, so that items added during a poll are not missed", async () => {
    const pagination = { by: "nextUrlPath", path: "$.next" } as const;
    const rig = rigOf({ discriminator, order: "unordered", itemsPath: "$.rows", pagination }, SINCE);
    const page = (ids: number[], next?: string) => json({ rows: ids.map((id) => ({ id })), next });
    // During the first walk, item 5 is added to page 1 after page 1 was read. Item 6 is added to page 2 before page 2 is read.
    for (const first of [
      [3, 1],
      [5, 3, 1],
      [5, 3, 1],
    ]) {
      server.answers = [page(first, "/2"), page([2, 6])];
      expect(await rig.poll()).toEqual({ kind: "done" });
    }
    expect(rig.log.map(({ id }) => id)).toEqual(["3", "1", "2", "6", "5"]);
    expect(queries().filter((query) => query !== "2")).toEqual(["", "", "since=6"]);
  });

  it('with `startAt: "now"` publishes no existing item, even if the first poll is interrupted', async () => {
    const pagination = { by: "nextUrlPath", path: "$.next" } as const;
    const rig = rigOf({ discriminator, startAt: "now", itemsPath: "$.rows", pagination });
    const page = (ids: number[], next?: string) => json({ rows: ids.map((id) => ({ id })), next });
    server.answers = [page([1, 2], "/2"), status(404)];
    expect(await rig.poll()).toMatchObject({ kind: "failed" });
    server.answers = [page([1, 2], "/2"), page([3, 4])];
    expect(await rig.poll()).toEqual({ kind: "done" });
    server.answers = [page([1, 2], "/2"), page([3, 4, 5])];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(rig.log.map(({ id }) => id)).toEqual(["5"]);
  });

  it('with `startAt: "now"` requests only the first page if the newest items come first', async () => {
    const pagination = { by: "nextUrlPath", path: "$.next" } as const;
    const rig = rigOf({
      discriminator,
      startAt: "now",
      order: "descending",
      itemsPath: "$.rows",
      pagination,
    });
    server.answers = [json({ rows: [{ id: 9 }, { id: 8 }], next: "/2" })];
    expect(await rig.poll()).toEqual({ kind: "done" });
    server.answers = [json({ rows: [{ id: 10 }, { id: 9 }], next: "/2" })];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(server.requests).toHaveLength(2);
    expect(rig.log.map(({ id }) => id)).toEqual(["10"]);
  });
});

describe("polling with a stored set of seen items", () => {
  it("publishes an item only if its key is new or its version has changed", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet", key: "$.url" }, versionPath: "$.v" });
    const pages = [
      [{ id: 1, url: "a", v: 1 }],
      [
        { id: 2, url: "a", v: 1 },
        { id: 1, url: "a", v: 2 },
      ],
    ];
    expect(await pollEach(rig, ...pages)).toEqual(["1/1", "1/2"]);
  });

  it("publishes an item without an id only if its content is new", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet" }, itemId: undefined });
    await pollEach(rig, '[{"a":1}]', '[{"a":1},{"a":1.0}]', '[{"a":1.0}]');
    expect(rig.log.map(({ data }) => data)).toEqual(['{"a":1}', '{"a":1.0}']);
  });

  it('with `startAt: "now"` publishes no item of the first poll', async () => {
    const rig = rigOf({ discriminator: { by: "seenSet" }, startAt: "now" });
    expect(await pollEach(rig, [{ id: 1 }], [{ id: 1 }, { id: 2 }])).toEqual(["2"]);
  });

  it("removes old items from the set, except items that the server still returns", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet", maxAgeSeconds: 3600 } });
    await pollEach(rig, [{ id: "stays" }, { id: "goes" }]);
    for (let minutes = 0; minutes < 180; minutes += 30) {
      clock.nowMs += 1_800_000;
      await pollEach(rig, [{ id: "stays" }]);
    }
    expect(await pollEach(rig, [{ id: "stays" }, { id: "goes" }])).toEqual(["stays", "goes", "goes"]);
  });

  it("removes the longest unseen items when the set exceeds `maxKeys`", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet", maxKeys: 3 } });
    const ids = (...all: number[]) => all.map((id) => ({ id }));
    expect(await pollEach(rig, ids(1, 2), ids(3, 4), ids(2, 3, 4))).toEqual(["1", "2", "3", "4"]);
    server.answers = [json(ids(1, 2, 3, 4))];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "position_full" });
    expect(rig.log).toHaveLength(4);
    expect(rig.cursor?.length).toBeLessThan(200);
  });
});

describe("polling a single document", () => {
  it("publishes an item again if a version of the document did not contain it", async () => {
    const rig = rigOf({ discriminator: { by: "etag" } });
    const [stays, returns] = [{ id: "stays" }, { id: "returns" }];
    const pages = [[stays, returns], [stays, returns], [stays], [stays, returns]];
    expect(await pollEach(rig, ...pages)).toEqual(["stays", "returns", "returns"]);
  });
});
