import { describe, expect, it } from "vitest";
import { type Answer, json, status } from "./answer-server.ts";
import { idsOf, openedPolls } from "./poll-support.ts";
import type { Config, PollRig } from "./support.ts";

const { rigOf, server } = openedPolls();

const pagination = { by: "nextUrlPath", path: "$.next" } as const;
const sequence = { by: "sequence", path: "$.id" } as const;
const timestamp = { by: "timestamp", path: "$.at" } as const;

const at = (second: number) => ({
  id: second,
  at: new Date(Date.UTC(2026, 0, 30, 10, 0, second)).toISOString(),
});
const numbered = (id: number) => ({ id });
const worded = (id: number) => ({ id: `item-${id}` });

/** Serves the pages of a feed. Each page except the last one has the address of the next page. */
function serve(pages: readonly (readonly unknown[])[], last: Answer = status(404)): void {
  server.answers = [
    (request, response) => {
      const index = Number(/^\/(\d+)$/.exec(request.url ?? "")?.[1] ?? 0);
      const rows = pages[index];
      const next = index + 1 < pages.length || last !== NONE ? `/${index + 1}` : null;
      if (rows === undefined) last(request, response);
      else json({ rows, next })(request, response);
    },
  ];
}
const NONE: Answer = status(404);

const serveAll = (...pages: (readonly unknown[])[]): void => serve(pages, NONE);

/** The same source after a person has changed a setting. */
function changed(rig: PollRig, config: Partial<Config>): PollRig {
  const next = rigOf({ ...(rig.config as Config), ...config });
  next.cursor = rig.cursor;
  next.log.push(...rig.log);
  return next;
}

describe("items that contradict the setting `order`", () => {
  it.each<[string, Partial<Config>, Config["order"], readonly (readonly unknown[])[]]>([
    [
      "numbers, newest first",
      { discriminator: sequence },
      "descending",
      [[5, 4], [3, 2], [1]].map((ids) => ids.map(numbered)),
    ],
    [
      "one number per page, newest first",
      { discriminator: sequence },
      "descending",
      [[5], [4], [3], [2], [1]].map((ids) => ids.map(numbered)),
    ],
    [
      "ascending pages in descending order",
      { discriminator: sequence },
      "unordered",
      [[4, 5], [2, 3], [1]].map((ids) => ids.map(numbered)),
    ],
    [
      "texts, newest first",
      { discriminator: { ...sequence, compare: "text" } },
      "descending",
      [[5, 4], [3, 2], [1]].map((ids) => ids.map(worded)),
    ],
    [
      "timestamps, newest first",
      { discriminator: timestamp },
      "descending",
      [[5, 4], [3, 2], [1]].map((ids) => ids.map(at)),
    ],
    [
      "timestamps, oldest first",
      { discriminator: timestamp, order: "descending" },
      "ascending",
      [[1, 2], [3, 4], [5]].map((ids) => ids.map(at)),
    ],
    [
      "one number per page, oldest first",
      { discriminator: sequence, order: "descending" },
      "ascending",
      [[1], [2], [3], [4], [5]].map((ids) => ids.map(numbered)),
    ],
    [
      "no order",
      { discriminator: sequence },
      "unordered",
      [[2, 5], [1, 3], [4]].map((ids) => ids.map(numbered)),
    ],
  ])("(%s) publish nothing until the setting is corrected, and then each item once", async (_, config, order, pages) => {
    const rig = rigOf({ pagination, ...config });
    serveAll(...pages);
    for (let polls = 0; polls < 2; polls++) {
      expect(await rig.poll()).toMatchObject({
        kind: "broken",
        code: "order",
        message: expect.stringMatching(/`order`.*Set `order` to /),
      });
      expect(rig.log).toEqual([]);
    }
    const fixed = changed(rig, { order });
    expect(await fixed.pollAll()).toEqual({ kind: "done" });
    expect(await fixed.pollAll()).toEqual({ kind: "done" });
    expect(idsOf(fixed).toSorted()).toEqual(
      pages
        .flat()
        .map((item) => String((item as { id: unknown }).id))
        .toSorted(),
    );
  });

  it("send no further request, show no cursor, and are checked again after the cursor was set", async () => {
    const rig = rigOf({ pagination, discriminator: sequence });
    serveAll([numbered(5), numbered(4)], [numbered(3)]);
    await rig.poll();
    const { length } = server.requests;
    await rig.poll();
    expect(server.requests).toHaveLength(length);
    expect(rig.shownCursor()).toBeNull();
    rig.setCursor({ sequence: "0" });
    expect(await rig.poll()).toMatchObject({ code: "order" });
    expect(server.requests.length).toBeGreaterThan(length);
    expect(rig.shownCursor()).toEqual({ sequence: "0" });
  });

  it("on a later page leave the cursor where it was before the walk, even after a failed and a partial poll", async () => {
    const rig = rigOf({ pagination: { ...pagination, maxPages: 2 }, discriminator: sequence });
    const later = (...ids: number[]) => ids.map(numbered);
    serveAll(later(3));
    await rig.poll();
    serve([later(3, 4), later(5, 6)], status(500));
    expect(await rig.poll()).toMatchObject({ kind: "done" });
    serveAll(later(3, 4), later(5, 6), later(2, 1));
    const wide = changed(rig, { pagination: { ...pagination, maxPages: 9 } });
    expect(await wide.poll()).toMatchObject({ code: "order" });
    expect(wide.shownCursor()).toEqual({ sequence: "3" });
    const fixed = changed(wide, { order: "unordered" });
    server.answers = [json({ rows: later(3, 4, 5, 6, 7) })];
    expect(await fixed.poll()).toEqual({ kind: "done" });
    expect(new Set(idsOf(fixed))).toEqual(new Set(["3", "4", "5", "6", "7"]));
  });

  it.each<[string, Partial<Config>]>([
    ["ascending", {}],
    ["descending", { order: "descending" }],
  ])("are published if the page is complete (%s)", async (_, config) => {
    const rig = rigOf({ pagination, discriminator: sequence, ...config });
    const ids = config.order === "descending" ? [1, 2, 3] : [3, 2, 1];
    serveAll(ids.map(numbered));
    expect(await rig.poll()).toEqual({ kind: "done" });
    serveAll(ids.map(numbered), []);
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig).toSorted()).toEqual(["1", "2", "3"]);
  });

  it("do not count as a contradiction within the look-back", async () => {
    const rig = rigOf({ pagination, discriminator: { ...sequence, lookBack: 2 } });
    serveAll([2, 1, 3].map(numbered), [5, 4].map(numbered));
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig).toSorted()).toEqual(["1", "2", "3", "4", "5"]);
  });

  it("publish nothing if the next page fails, because the first page may be complete", async () => {
    const rig = rigOf({ pagination, discriminator: sequence, retry: { attempts: 0 } });
    serve([[2, 1].map(numbered)], status(503));
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "http_503" });
    expect(rig.log).toEqual([]);
    serveAll([2, 1].map(numbered), []);
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig).toSorted()).toEqual(["1", "2"]);
  });

  it("are reported by a dry run", async () => {
    const rig = rigOf({ pagination, discriminator: sequence });
    serveAll([5, 4].map(numbered), [3].map(numbered));
    expect(await rig.dryRun()).toMatchObject({ end: { code: "order" }, deliveries: [] });
    expect(rig.cursor).toBeUndefined();
  });
});

describe("a page without readable positions", () => {
  it.each<[string, Config["discriminator"], unknown, string]>([
    ["epoch seconds as iso", timestamp, { at: 1_769_851_800 }, '"1769851800"'],
    ["a time with a zone name", timestamp, { at: "2026-01-15 10:20:30 UTC" }, '"2026-01-15 10:20:30 UTC"'],
    [
      "microseconds",
      { ...timestamp, format: "epochMillis" },
      { at: 1_769_851_800_000_000 },
      '"1769851800000000"',
    ],
    ["a misspelled path", { ...timestamp, path: "$.ta" }, { at: at(1).at }, "no single value"],
    ["a date in another notation", timestamp, { at: "15.01.2026" }, '"15.01.2026"'],
    ["a fraction", { by: "sequence", path: "$.at" }, { at: 1.5 }, '"1.5"'],
    ["an object", { by: "sequence", path: "$.at" }, { at: { n: 1 } }, "no single value"],
  ])("(%s) makes the poll and the dry run fail with the path and a value", async (_, discriminator, item, value) => {
    const rig = rigOf({ discriminator });
    server.answers = [json({ rows: [{ id: 1, ...(item as object) }] })];
    const { path } = discriminator as { readonly path: string };
    const end = {
      kind: "failed",
      code: "position_missing",
      isRejection: true,
      message: expect.stringContaining(`(${path}) selects ${value}`),
    };
    expect(await rig.poll()).toMatchObject(end);
    expect((await rig.dryRun()).end).toMatchObject(end);
    expect([rig.log, rig.cursor]).toEqual([[], undefined]);
  });

  it("publishes all items and warns once if only some items have no readable position", async () => {
    const rig = rigOf({ discriminator: timestamp });
    server.answers = [json({ rows: [at(1), { id: 2, at: "soon" }] })];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig).toSorted()).toEqual(["1", "2"]);
    expect(rig.warnings).toEqual(["position_missing"]);
  });
});
