import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { polling } from "../../../src/channels/polling/polling.ts";
import { PollUpstream } from "../../support/poll-upstream.ts";
import { AnswerServer, json, status } from "./answer-server.ts";
import { type Config, PollRig } from "./support.ts";

let server: AnswerServer;
let nowMs: number;

beforeAll(async () => {
  server = await AnswerServer.start();
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(() => {
  server.asked.length = 0;
  nowMs = Date.UTC(2026, 0, 31, 12);
});

const SINCE = { since: "{{cursor}}" };

function rigOf(config: Partial<Config> & Pick<Config, "discriminator">, query: Record<string, string> = {}) {
  return new PollRig({
    clock: () => nowMs,
    config: {
      request: { url: `${server.origin}/`, query },
      itemsPath: "$",
      itemId: "$.id",
      startAt: "earliest",
      ...config,
    },
  });
}

/** Polls once for each page. */
async function pollEach(rig: PollRig, ...pages: readonly unknown[]): Promise<string[]> {
  for (const page of pages) {
    server.answers = [json(page)];
    expect(await rig.pollAll()).toEqual({ kind: "done" });
  }
  return rig.log.map(({ id }) => id);
}

const queries = () => server.asked.map(({ url }) => decodeURIComponent(url.replace(/^\/\??/, "")));
const at = (second: number, id: string | number = second) => ({
  id,
  at: new Date(Date.UTC(2026, 0, 31, 10, 0, second)).toISOString(),
});

describe("a timestamp", () => {
  const discriminator = { by: "timestamp", path: "$.at" } as const;

  it("asks from the latest instant on, and knows the items of that instant", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    expect(
      await pollEach(rig, [at(1), at(2, "a")], [at(2, "a"), at(2, "b")], [at(2, "b"), at(2, "a")]),
    ).toEqual(["1", "a", "b"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:02.000Z");
  });

  it("looks back for late items, and knows those that it has seen there", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, lookBackSeconds: 10 } }, SINCE);
    const late = [at(15), at(20), at(12)];
    expect(await pollEach(rig, [at(15), at(20)], late, late)).toEqual(["15", "20", "12"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:10.000Z");
    expect(await pollEach(rig, [at(9)])).toHaveLength(3);
  });

  it("begins now, at a given instant, or with the earliest item", async () => {
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

  it("tells an item that changed by its version", async () => {
    const rig = rigOf({ discriminator, versionPath: "$.at" }, SINCE);
    expect(await pollEach(rig, [at(1, "a")], [at(2, "a")])).toEqual([`a/${at(1).at}`, `a/${at(2).at}`]);
  });

  it.each<[string, unknown]>([
    ["none", { id: "x" }],
    ["one that cannot be read", { id: "x", at: "yesterday" }],
    ["one far in the future", { id: "x", at: "2126-01-01T00:00:00Z" }],
    ["several", { id: "x", at: ["a", "b"] }],
  ])("of an item that has %s moves nothing, and the item comes once", async (_, stray) => {
    const rig = rigOf({ discriminator }, SINCE);
    const pages = [[at(1), stray], [at(1), stray], [at(2), stray], [stray], [at(3)]];
    expect((await pollEach(rig, ...pages)).toSorted()).toEqual(["1", "2", "3", "x"]);
    expect(queries().at(-1)).toBe("since=2026-01-31T10:00:02.000Z");
  });

  it("in the future does not bring its item again when that time has come", async () => {
    const rig = rigOf({ discriminator }, SINCE);
    const ahead = { id: "x", at: new Date(nowMs + 2 * 86_400_000).toISOString() };
    await pollEach(rig, [at(1), ahead]);
    for (let days = 0; days < 4; days++) {
      nowMs += 43_200_000;
      await pollEach(rig, [at(1), ahead], [ahead]);
    }
    expect(rig.log.map(({ id }) => id)).toEqual(["1", "x"]);
  });

  it("fails the poll when more items share an instant than it can remember", async () => {
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

describe("pages by number", () => {
  it.each([
    "offset",
    "page",
  ] as const)("by %s lose no item when an earlier one is deleted meanwhile", async (by) => {
    await using upstream = await PollUpstream.start();
    upstream.clear({ paging: by });
    const pagination = { by, param: by, pageSize: 3 };
    const discriminator = { by: "timestamp", path: "$.at" } as const;
    const request = { url: `${upstream.origin}/rows`, query: SINCE };
    const rig = rigOf({ discriminator, pagination, request, itemsPath: "$.rows" });
    for (let row = 1; row <= 6; row++) upstream.insert();
    upstream.nowMs += 1000;
    upstream.insert();
    // The walk begins anew at the instant of all of them, and goes on to its second page, where the fourth was a moment ago.
    upstream.faults = [undefined, undefined, { kind: "do", change: () => upstream.delete("r00001") }];
    expect(await rig.pollAll()).toEqual({ kind: "done" });
    expect(rig.log.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7].map((n) => `r0000${n}`));
  });
});

describe("a sequence", () => {
  const discriminator = { by: "sequence", path: "$.id" } as const;

  it("compares numbers of any size exactly, spelled as numbers or as texts", async () => {
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

  it("compares texts by their code units", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, compare: "text" } });
    expect(await pollEach(rig, [{ id: "b" }], [{ id: "B" }, { id: "ba" }, { id: "b" }])).toEqual(["b", "ba"]);
  });

  it("looks back for numbers that come late", async () => {
    const rig = rigOf({ discriminator: { ...discriminator, lookBack: 3 } }, SINCE);
    const ids = (...all: number[]) => all.map((id) => ({ id }));
    expect(await pollEach(rig, ids(5, 7), ids(3, 4, 5, 6, 7), ids(4, 5, 6, 7))).toEqual(["5", "7", "4", "6"]);
    expect(queries().at(-1)).toBe("since=4");
  });

  it("over unordered pages stays one walk behind, so that items written meanwhile are found", async () => {
    const pagination = { by: "nextUrlPath", path: "$.next" } as const;
    const rig = rigOf({ discriminator, order: "unordered", itemsPath: "$.rows", pagination }, SINCE);
    const page = (ids: number[], next?: string) => json({ rows: ids.map((id) => ({ id })), next });
    // 5 is written to the first page while the second, which has 6 by then, is read.
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

  it("that begins now takes all items of the first walk as known, also when that is cut short", async () => {
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

  it("that begins now reads one page when the newest come first", async () => {
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
    expect(server.asked).toHaveLength(2);
    expect(rig.log.map(({ id }) => id)).toEqual(["10"]);
  });
});

describe("a set of seen items", () => {
  it("knows items by their key, and updates by the version", async () => {
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

  it("knows items without an id by their content", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet" }, itemId: undefined });
    await pollEach(rig, '[{"a":1}]', '[{"a":1},{"a":1.0}]', '[{"a":1.0}]');
    expect(rig.log.map(({ data }) => data)).toEqual(['{"a":1}', '{"a":1.0}']);
  });

  it("that begins now takes the items of the first poll as known", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet" }, startAt: "now" });
    expect(await pollEach(rig, [{ id: 1 }], [{ id: 1 }, { id: 2 }])).toEqual(["2"]);
  });

  it("forgets old items, but none that the server still shows", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet", maxAgeSeconds: 3600 } });
    await pollEach(rig, [{ id: "stays" }, { id: "goes" }]);
    for (let minutes = 0; minutes < 180; minutes += 30) {
      nowMs += 1_800_000;
      await pollEach(rig, [{ id: "stays" }]);
    }
    expect(await pollEach(rig, [{ id: "stays" }, { id: "goes" }])).toEqual(["stays", "goes", "goes"]);
  });

  it("forgets the longest unseen beyond maxKeys, and fails the poll when one answer has more", async () => {
    const rig = rigOf({ discriminator: { by: "seenSet", maxKeys: 3 } });
    const ids = (...all: number[]) => all.map((id) => ({ id }));
    expect(await pollEach(rig, ids(1, 2), ids(3, 4), ids(2, 3, 4))).toEqual(["1", "2", "3", "4"]);
    server.answers = [json(ids(1, 2, 3, 4))];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "position_full" });
    expect(rig.log).toHaveLength(4);
    expect(rig.cursor?.length).toBeLessThan(200);
  });
});

describe("a token", () => {
  const discriminator = { by: "token", path: "$.token" } as const;
  const config = { discriminator, itemsPath: "$.rows" } as const;
  const page = (ids: number[], token?: string, rest: object = {}) =>
    json({ rows: ids.map((id) => ({ id })), ...(token !== undefined && { token }), ...rest });
  const idsOf = (rig: PollRig) => rig.log.map(({ id }) => id);

  it("is sent with the next poll, from the page or from a header", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1], "a b"), page([2], "c"), page([])];
    for (let polls = 0; polls < 4; polls++) await rig.poll();
    expect(queries()).toEqual(["", "since=a+b", "since=c", "since=c"]);
    const header = rigOf({ ...config, discriminator: { by: "token", header: "X-Next" } }, SINCE);
    server.answers = [json({ rows: [] }, { "x-next": "7" })];
    await header.poll();
    await header.poll();
    expect(queries().at(-1)).toBe("since=7");
  });

  it("asks for more at once while the server has more", async () => {
    const rig = rigOf(
      {
        ...config,
        discriminator: { ...discriminator, hasMorePath: "$.more" },
        pagination: { by: "nextUrlPath", path: "$.none" },
      },
      SINCE,
    );
    server.answers = [
      page([1], "a", { more: true }),
      page([2], "b", { more: true }),
      page([3], "c", { more: false }),
    ];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3"]);
    expect(queries()).toEqual(["", "since=a", "since=b"]);
  });

  it("is called unchanged when it is an address", async () => {
    const rig = rigOf({ ...config, discriminator: { ...discriminator, as: "url" } }, { all: "1" });
    server.answers = [page([1], "/delta?x=%41"), page([2])];
    await rig.poll();
    await rig.poll();
    expect(queries()).toEqual(["all=1", "delta?x=A"]);
    expect(server.asked[1]?.url).toBe("/delta?x=%41");
  });

  it("goes on at the page where the last poll was cut off", async () => {
    const rig = rigOf({ ...config, pagination: { by: "cursorToken", path: "$.next", name: "page" } }, SINCE);
    server.answers = [page([1], undefined, { next: "p2" }), status(500)];
    await rig.poll();
    server.answers = [page([2], "t")];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2"]);
    expect(queries().at(-1)).toBe("page=p2");
  });

  it("begins its pages anew when the server no longer knows one, and repeats nothing", async () => {
    const rig = rigOf(
      { ...config, pagination: { by: "cursorToken", path: "$.next", name: "page" }, retry: { attempts: 0 } },
      SINCE,
    );
    server.answers = [page([1, 2], undefined, { next: "p2" }), status(500)];
    await rig.poll();
    server.answers = [status(410), page([1, 2], undefined, { next: "p2b" }), page([3], "t")];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3"]);
    expect(rig.warnings).toEqual(["page_expired"]);
  });

  it.each<["resync" | "skip" | "stop", string[], object]>([
    ["resync", ["1", "1", "2"], { kind: "done" }],
    ["skip", ["1"], { kind: "done" }],
    ["stop", ["1"], { kind: "broken", code: "http_410" }],
  ])("that the server no longer knows leads to: %s", async (onExpired, ids, end) => {
    const rig = rigOf({ ...config, discriminator: { ...discriminator, onExpired } }, SINCE);
    server.answers = [page([1], "a"), status(410), page([1, 2], "b"), page([], "b")];
    await rig.poll();
    expect(await rig.poll()).toMatchObject(end);
    expect(idsOf(rig)).toEqual(ids);
    // What comes twice has the same identity: dedupe knows it.
    expect(new Set(rig.log.map(({ identity }) => identity)).size).toBe(new Set(ids).size);
  });

  it("is no longer known when the body of an answer says so", async () => {
    const expiredOn = { path: "$.error.code", equals: "syncTokenInvalid" };
    const rig = rigOf({ ...config, discriminator: { ...discriminator, expiredOn } }, SINCE);
    const expired = { error: { code: "syncTokenInvalid" } };
    server.answers = [
      page([1], "a"),
      json(expired, {}, 400),
      page([2], "b"),
      json({ ...expired, rows: [] }),
      page([3], "c"),
    ];
    for (let polls = 0; polls < 3; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3"]);
    expect(rig.warnings).toEqual(["position_expired", "position_expired"]);
  });

  it("that a page lacks leaves the items of that page known until one comes", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1], "a"), page([2]), page([2, 3]), page([2, 3, 4], "b"), page([4], "c")];
    for (let polls = 0; polls < 5; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "4"]);
  });

  it("that the first answer lacks fails the poll instead of asking for all again and again", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1])];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "token_missing" });
    expect(rig.log).toEqual([]);
  });

  it("that begins now skips all items up to its first token", async () => {
    const rig = rigOf({ ...config, startAt: "now" }, SINCE);
    server.answers = [page([1], "a"), page([2], "b")];
    await rig.poll();
    await rig.poll();
    expect(idsOf(rig)).toEqual(["2"]);
  });
});

describe("a cursor", () => {
  const show = (rig: PollRig) => polling.cursor?.show(rig.cursor ?? "");
  const set = (rig: PollRig, value: unknown) => polling.cursor?.parse(value, rig.settings);

  it.each<[Config["discriminator"], unknown, unknown, string[]]>([
    [{ by: "timestamp", path: "$.at" }, { timestamp: at(3).at }, { timestamp: at(2).at }, ["2", "3"]],
    [{ by: "sequence", path: "$.id" }, { sequence: "3" }, { sequence: 1 }, ["2", "3"]],
    [{ by: "seenSet" }, { seen: 3 }, { seen: "none" }, ["1", "2", "3"]],
    [{ by: "seenSet" }, { seen: 3 }, { seen: "all" }, []],
    [{ by: "etag" }, { seen: 3 }, { seen: "none" }, ["1", "2", "3"]],
  ])("of %j is shown, and may be set by a person", async (discriminator, shown, value, again) => {
    const rig = rigOf({ discriminator });
    const pages = [[at(1), at(2), at(3)]];
    await pollEach(rig, ...pages);
    expect(show(rig)).toEqual(shown);
    const parsed = set(rig, value);
    rig.cursor = parsed?.ok ? parsed.value : undefined;
    rig.log.length = 0;
    expect(await pollEach(rig, ...pages)).toEqual(again);
    expect(show(rig)).toEqual(shown);
  });

  it.each<[Config["discriminator"], unknown, string]>([
    [{ by: "timestamp", path: "$.at" }, { timestamp: "soon" }, "timestamp"],
    [{ by: "timestamp", path: "$.at" }, { sequence: 1 }, "timestamp"],
    [{ by: "sequence", path: "$.id" }, { sequence: 1.5 }, "sequence"],
    [{ by: "sequence", path: "$.id" }, { sequence: "x" }, "sequence"],
    [{ by: "seenSet" }, { seen: 1 }, "seen"],
    [{ by: "etag" }, null, "seen"],
  ])("of %j that is set to %j is refused, naming the field", (discriminator, value, path) => {
    const parsed = set(rigOf({ discriminator }), value);
    expect(parsed?.ok === false && parsed.error.map((finding) => finding.path)).toEqual([path]);
  });

  it("of a token is set to the token itself", async () => {
    const discriminator = { by: "token", path: "$.t" } as const;
    const rig = rigOf({ discriminator }, SINCE);
    const parsed = set(rig, { token: "x" });
    rig.cursor = parsed?.ok ? parsed.value : undefined;
    await pollEach(rig, []);
    expect(queries()).toEqual(["since=x"]);
    expect(show(rig)).toEqual({ token: "x" });
    expect(set(rig, { token: "" })?.ok).toBe(false);
    expect(set(rigOf({ discriminator: { ...discriminator, as: "url" } }), { token: "x" })?.ok).toBe(false);
  });

  it("of another discriminator stops the source", async () => {
    const rig = rigOf({ discriminator: { by: "sequence", path: "$.id" } });
    await pollEach(rig, [{ id: 1 }]);
    const other = rigOf({ discriminator: { by: "seenSet" } });
    other.cursor = rig.cursor;
    expect(await other.poll()).toMatchObject({ kind: "broken", code: "cursor" });
    const text = rigOf({ discriminator: { by: "sequence", path: "$.id", compare: "text" } });
    await pollEach(text, [{ id: "b" }]);
    rig.cursor = text.cursor;
    expect(await rig.poll()).toMatchObject({ kind: "broken", code: "cursor" });
  });

  it("is not written when nothing has changed", async () => {
    const rig = rigOf({ discriminator: { by: "timestamp", path: "$.at" } }, SINCE);
    await pollEach(rig, [at(1)]);
    rig.crashes = ["refused"];
    await pollEach(rig, [at(1)], []);
    expect(rig.crashes).toEqual(["refused"]);
  });
});

describe("a dry run", () => {
  it("shows the request, the answer, what would be delivered and where the cursor would be, and changes nothing", async () => {
    const rig = rigOf({ discriminator: { by: "sequence", path: "$.id" } }, SINCE);
    await pollEach(rig, [{ id: 1 }]);
    const { cursor } = rig;
    server.answers = [json([{ id: 1 }, { id: 2 }], { "x-page": "1", "set-cookie": "a=b" })];
    const dry = await rig.dryRun();
    expect(dry).toMatchObject({
      request: { method: "GET", url: `${server.origin}/?since=1`, body: null },
      response: { status: 200, headers: { "x-page": "1" }, bytes: 19 },
      end: { kind: "done" },
    });
    expect(dry.deliveries.map(({ body }) => String(body))).toEqual(['[null,{"id":2}]']);
    expect(polling.cursor?.show(dry.cursor ?? "")).toEqual({ sequence: "2" });
    expect(rig.cursor).toBe(cursor);
    expect(rig.log).toHaveLength(1);
  });

  it("reads one page only, and tells how a poll would end", async () => {
    const rig = rigOf({
      discriminator: { by: "seenSet" },
      order: "descending",
      pagination: { by: "linkHeader" },
    });
    server.answers = [json([{ id: 1 }], { link: '</2>; rel="next"' })];
    expect(await rig.dryRun()).toMatchObject({ end: { kind: "done" }, deliveries: [{}] });
    expect(server.asked).toHaveLength(1);
    server.answers = [status(404)];
    expect(await rig.dryRun()).toMatchObject({
      end: { code: "http_404" },
      deliveries: [],
      response: { status: 404 },
      cursor: null,
    });
  });
});
