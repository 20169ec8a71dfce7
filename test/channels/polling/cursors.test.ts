import { describe, expect, it } from "vitest";
import { polling } from "../../../src/channels/polling/polling.ts";
import { json, status } from "./answer-server.ts";
import { at, openedPositions, SINCE } from "./positions-support.ts";
import type { Config, PollRig } from "./support.ts";

const { pollEach, queries, rigOf, server } = openedPositions();

describe("polling with a token from the server's last response", () => {
  const discriminator = { by: "token", path: "$.token" } as const;
  const config = { discriminator, itemsPath: "$.rows" } as const;
  const page = (ids: number[], token?: string, rest: object = {}) =>
    json({ rows: ids.map((id) => ({ id })), ...(token !== undefined && { token }), ...rest });
  const idsOf = (rig: PollRig) => rig.log.map(({ id }) => id);

  it("sends the token from the response body or header with the next poll", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1], "a b"), page([2], "c"), page([])];
    for (let polls = 0; polls < 4; polls++) await rig.poll();
    expect(queries()).toEqual(["", "since=a b", "since=c", "since=c"]);
    const header = rigOf({ ...config, discriminator: { by: "token", header: "X-Next" } }, SINCE);
    server.answers = [json({ rows: [] }, { "x-next": "7" })];
    await header.poll();
    await header.poll();
    expect(queries().at(-1)).toBe("since=7");
  });

  it("requests the next page at once with the new token while the server reports more items", async () => {
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

  it("requests the token unchanged if the token is a URL", async () => {
    const rig = rigOf({ ...config, discriminator: { ...discriminator, as: "url" } }, { all: "1" });
    server.answers = [page([1], "/delta?x=%41"), page([2])];
    await rig.poll();
    await rig.poll();
    expect(queries()).toEqual(["all=1", "delta?x=A"]);
    expect(server.requests[1]?.url).toBe("/delta?x=%41");
  });

  it("continues at the page where the previous poll was interrupted", async () => {
    const rig = rigOf({ ...config, pagination: { by: "cursorToken", path: "$.next", name: "page" } }, SINCE);
    server.answers = [page([1], undefined, { next: "p2" }), status(500)];
    await rig.poll();
    server.answers = [page([2], "t")];
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2"]);
    expect(queries().at(-1)).toBe("page=p2");
  });

  it("restarts at the first page if the server no longer knows a later page, and publishes no item twice", async () => {
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
  ])("handles a token that the server no longer knows according to `onExpired: %s`", async (onExpired, ids, end) => {
    const rig = rigOf({ ...config, discriminator: { ...discriminator, onExpired } }, SINCE);
    server.answers = [page([1], "a"), status(410), page([1, 2], "b"), page([], "b")];
    await rig.poll();
    expect(await rig.poll()).toMatchObject(end);
    expect(idsOf(rig)).toEqual(ids);
    // Repeated items have the same identity, so dedupe recognizes them.
    expect(new Set(rig.log.map(({ identity }) => identity)).size).toBe(new Set(ids).size);
  });

  it("restarts without a token if the response body contains the configured expiry error", async () => {
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

  it("publishes no item twice if a response lacks a token, so that the next poll repeats its items", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1], "a"), page([2]), page([2, 3]), page([2, 3, 4], "b"), page([4], "c")];
    for (let polls = 0; polls < 5; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1", "2", "3", "4", "4"]);
  });

  it("fails if the first response contains no token", async () => {
    const rig = rigOf(config, SINCE);
    server.answers = [page([1])];
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "token_missing" });
    expect(rig.log).toEqual([]);
  });

  it('publishes no item of the first response if `startAt` is "now"', async () => {
    const rig = rigOf({ ...config, startAt: "now" }, SINCE);
    server.answers = [page([1], "a"), page([2], "b")];
    await rig.poll();
    await rig.poll();
    expect(idsOf(rig)).toEqual(["2"]);
  });
});

describe("the cursor of a polling channel", () => {
  const show = (rig: PollRig) => polling.cursor?.show(rig.cursor ?? "");
  const set = (rig: PollRig, value: unknown) => polling.cursor?.parse(value, rig.config);

  it.each<[Config["discriminator"], unknown, unknown, string[]]>([
    [{ by: "timestamp", path: "$.at" }, { timestamp: at(3).at }, { timestamp: at(2).at }, ["2", "3"]],
    [{ by: "sequence", path: "$.id" }, { sequence: "3" }, { sequence: 1 }, ["2", "3"]],
    [{ by: "seenSet" }, { seen: 3 }, { seen: "none" }, ["1", "2", "3"]],
    [{ by: "seenSet" }, { seen: 3 }, { seen: "all" }, []],
    [{ by: "etag" }, { seen: 3 }, { seen: "none" }, ["1", "2", "3"]],
  ])("with the discriminator %j can be read and set through the API", async (discriminator, shown, value, again) => {
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
  ])("with the discriminator %j cannot be set to the invalid value %j", (discriminator, value, path) => {
    const parsed = set(rigOf({ discriminator }), value);
    expect(parsed?.ok === false && parsed.error.map((finding) => finding.path)).toEqual([path]);
  });

  it("can be set to a token through the API", async () => {
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

  it("stops the channel if the cursor was written with another discriminator setting", async () => {
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

  it("is not written to Redis again if a poll has not changed it", async () => {
    const rig = rigOf({ discriminator: { by: "timestamp", path: "$.at" } }, SINCE);
    await pollEach(rig, [at(1)]);
    rig.crashes = ["refused"];
    await pollEach(rig, [at(1)], []);
    expect(rig.crashes).toEqual(["refused"]);
  });
});

describe("a dry run of a poll", () => {
  it("returns the request, response, deliveries and next cursor, and changes no state", async () => {
    const rig = rigOf({ discriminator: { by: "sequence", path: "$.id" } }, SINCE);
    await pollEach(rig, [{ id: 1 }]);
    const { cursor } = rig;
    server.answers = [json([{ id: 1 }, { id: 2 }], { "x-page": "1", "set-cookie": "a=b" })];
    const dry = await rig.dryRun();
    expect(dry).toMatchObject({
      request: { method: "GET", url: `${server.origin}/?since=1`, body: null },
      response: { status: 200, headers: { "x-page": "1" }, bytes: 19 },
      known: 1,
      end: { kind: "done" },
    });
    expect(dry.deliveries.map(({ body }) => String(body))).toEqual(['[null,{"id":2}]']);
    expect(polling.cursor?.show(dry.cursor ?? "")).toEqual({ sequence: "2" });
    expect(rig.cursor).toBe(cursor);
    expect(rig.log).toHaveLength(1);
  });

  it("counts the items of a page without new items", async () => {
    for (const order of ["ascending", "descending", "unordered"] as const) {
      const rig = rigOf({ discriminator: { by: "seenSet" }, order });
      server.answers = [json([{ id: 2 }, { id: 1 }, null])];
      expect(await rig.dryRun()).toMatchObject({ deliveries: [{}], known: 0 });
      await rig.poll();
      expect(await rig.dryRun()).toMatchObject({ end: { kind: "done" }, deliveries: [], known: 2 });
    }
  });

  it("requests only one page, and returns the result that a real poll would have", async () => {
    const rig = rigOf({
      discriminator: { by: "seenSet" },
      order: "descending",
      pagination: { by: "linkHeader" },
    });
    server.answers = [json([{ id: 1 }], { link: '</2>; rel="next"' })];
    expect(await rig.dryRun()).toMatchObject({ end: { kind: "done" }, deliveries: [{}] });
    expect(server.requests).toHaveLength(1);
    server.answers = [status(404)];
    expect(await rig.dryRun()).toMatchObject({
      end: { code: "http_404" },
      deliveries: [],
      response: { status: 404 },
      cursor: null,
    });
  });
});
