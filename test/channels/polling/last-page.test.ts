import { describe, expect, it } from "vitest";
import { type Answer, json, status } from "./answer-server.ts";
import { idsOf, openedPolls, rows } from "./poll-support.ts";
import type { Config } from "./support.ts";

const { rigOf, server } = openedPolls();

const seenSet = { by: "seenSet" } as const;
const byCursor = { by: "cursorToken", path: "$.next", name: "token" } as const;
const byPage = { by: "page", param: "page" } as const;

/** Responds to the page with a token or number. The first page has neither. */
function serve(pages: Readonly<Record<string, object>>): void {
  const answer: Answer = (request, response) => {
    const query = new URL(request.url ?? "", server.origin).searchParams;
    const page = pages[query.get("token") ?? query.get("page") ?? query.get("offset") ?? ""];
    (page === undefined ? status(404) : json(page))(request, response);
  };
  server.answers = [answer];
}

describe("a page that names itself as the next page", () => {
  it.each<[string, Config["order"]]>([
    ["ascending", "ascending"],
    ["descending", "descending"],
    ["unordered", "unordered"],
  ])("is the last page, so that a poll in %s order ends and later polls find new items", async (_, order) => {
    const discriminator = { by: "sequence", path: "$.id", lookBack: order === "unordered" ? 1 : 0 } as const;
    const rig = rigOf({ pagination: byCursor, discriminator, order, startAt: "now" });
    serve({ "": { ...rows(), next: "c1" }, c1: { ...rows(), next: "c1" } });
    expect(await rig.poll()).toEqual({ kind: "done" });
    serve({ "": { ...rows(1), next: "c1" }, c1: { ...rows(), next: "c1" } });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1"]);
  });

  it.each<[string, Config["pagination"], (url: string) => Answer]>([
    ["address", { by: "nextUrlPath", path: "$.next" }, (url) => json({ ...rows(1), next: url })],
    ["relative address", { by: "nextUrlPath", path: "$.next" }, () => json({ ...rows(1), next: "" })],
    ["Link header", { by: "linkHeader" }, (url) => json(rows(1), { link: `<${url}>; rel="next"` })],
    ["token in the body", { ...byCursor, in: "body" }, () => json({ ...rows(1), next: "c1" })],
  ])("is recognized by its %s", async (name, pagination, answerOf) => {
    const request = {
      url: `${server.origin}/rows?a=%20b`,
      ...(name.includes("body") && ({ method: "POST", body: {} } as const)),
    };
    const rig = rigOf({ pagination, discriminator: seenSet, request });
    server.answers = [answerOf(request.url)];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1"]);
  });

  it("is not the last page if the server names another page when asked again", async () => {
    const rig = rigOf({ pagination: byCursor, discriminator: seenSet, order: "descending" });
    server.answers = [
      json({ ...rows(4, 3), next: "c1" }),
      json({ ...rows(2), next: "c1" }),
      json({ ...rows(2), next: "c2" }),
      json(rows(1)),
    ];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4"]);
  });
});

describe("the setting that says which page is the last one", () => {
  it.each<[string, Config["pagination"], object, object]>([
    ["lastPagePath", { ...byPage, lastPagePath: "$.isLast" }, { isLast: false }, { isLast: true }],
    ["hasMorePath", { ...byPage, hasMorePath: "$.more" }, { more: true }, { more: false }],
    ["hasMorePath with texts", { ...byPage, hasMorePath: "$.more" }, { more: "true" }, { more: "false" }],
    [
      "hasMore",
      { ...byPage, hasMore: { path: "$.end_of_stream", equals: false } },
      { end_of_stream: false },
      {},
    ],
    [
      "hasMore with a text",
      { ...byPage, hasMore: { path: "$.state", equals: "partial" } },
      { state: "partial" },
      { state: "complete" },
    ],
    [
      "hasMore with a number",
      { ...byPage, hasMore: { path: "$.left", equals: 1 } },
      { left: 1 },
      { left: 0 },
    ],
    [
      "lastPagePath, small pages",
      { ...byPage, pageSize: 50, lastPagePath: "$.isLast" },
      { isLast: false },
      { isLast: true },
    ],
    [
      "lastPagePath of tokens",
      { ...byCursor, lastPagePath: "$.done" },
      { done: false, next: "2" },
      { done: true, next: "3" },
    ],
  ])("(%s) ends the poll after that page", async (_, pagination, more, last) => {
    const rig = rigOf({ pagination, discriminator: seenSet });
    const pages = { ...rows(1), ...more };
    serve({ "": pages, 1: pages, 2: { ...rows(2), ...last } });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2"]);
    expect(server.requests).toHaveLength(2);
  });

  it.each<[string, object, string]>([
    ["no boolean", { more: "yes" }, '"yes"'],
    ["a number", { more: 1 }, '"1"'],
    ["no value", {}, "no value"],
    ["null", { more: null }, "null"],
  ])("makes the poll fail if it selects %s", async (_, flag, shown) => {
    for (const name of ["hasMorePath", "lastPagePath"]) {
      const rig = rigOf({ pagination: { ...byPage, [name]: "$.more" }, discriminator: seenSet });
      serve({ 1: { ...rows(1), ...flag } });
      expect(await rig.poll()).toMatchObject({
        kind: "failed",
        code: "next_page",
        message: expect.stringContaining(`\`pagination.${name}\` ($.more) selects ${shown}`),
      });
      expect(rig.log).toEqual([]);
    }
  });

  it("may be missing on a page without items", async () => {
    const rig = rigOf({ pagination: { ...byPage, hasMorePath: "$.more" }, discriminator: seenSet });
    serve({ 1: rows() });
    expect(await rig.poll()).toEqual({ kind: "done" });
  });

  it.each<[string, Config["pagination"], Record<string, object>]>([
    [
      "is never true",
      { ...byPage, hasMorePath: "$.isLast" },
      { 1: { ...rows(1), isLast: false }, 2: { ...rows(2), isLast: true } },
    ],
    [
      "is never true with tokens",
      { ...byCursor, hasMorePath: "$.isLast" },
      { "": { ...rows(1), isLast: false, next: "2" }, 2: { ...rows(2), isLast: true } },
    ],
    [
      "is true on the only page",
      { ...byCursor, hasMorePath: "$.isLast" },
      { "": { ...rows(1), isLast: true } },
    ],
    [
      "is always true",
      { ...byPage, hasMorePath: "$.isOk" },
      { 1: { ...rows(1), isOk: true }, 2: { ...rows(), isOk: true } },
    ],
    [
      "never has the value",
      { ...byPage, hasMore: { path: "$.mroe", equals: true } },
      { 1: { ...rows(1), more: true }, 2: { ...rows(2), more: false } },
    ],
  ])("makes the poll fail if it %s", async (_, pagination, pages) => {
    const rig = rigOf({ pagination, discriminator: seenSet });
    serve(pages);
    expect(await rig.poll()).toMatchObject({ kind: "failed", message: expect.stringContaining("says that") });
  });

  it("is verified by one more request until it has changed once", async () => {
    const rig = rigOf({ pagination: { ...byCursor, hasMorePath: "$.more" }, discriminator: seenSet });
    const { source } = rig;
    serve({ "": { ...rows(1), more: false, next: "2" }, 2: { ...rows(), more: false, next: "2" } });
    const counts: number[] = [];
    for (let polls = 0; polls < 3; polls++) {
      server.requests.length = 0;
      expect(await source.poll(rig.run(new AbortController().signal))).toEqual({ kind: "done" });
      counts.push(server.requests.length);
    }
    expect(counts).toEqual([2, 1, 1]);
  });

  it("must also select a boolean for tokens", async () => {
    const discriminator = { by: "token", path: "$.token", hasMorePath: "$.more" } as const;
    const rig = rigOf({ discriminator, request: { url: server.origin, query: { since: "{{cursor}}" } } });
    server.answers = [json({ ...rows(1), token: "t", more: "no" })];
    expect(await rig.poll()).toMatchObject({
      code: "has_more",
      message: expect.stringContaining('($.more) selects "no"'),
    });
    expect(rig.log).toEqual([]);
  });
});
