import { getLocal } from "mockttp";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { opened } from "../../support/opened.ts";
import { type Config, PollRig } from "./support.ts";

/** Polls the server of another project (mockttp), so that the behavior on the wire does not come from Inlet's own test server. */

const server = opened(() => getLocal());
beforeAll(async () => {
  await server.start();
});
afterEach(() => {
  vi.useRealTimers();
  server.reset();
});
afterAll(() => server.stop());

const rigOf = (config: Partial<Config> = {}): PollRig =>
  new PollRig({
    config: {
      request: { url: server.urlFor("/rows") },
      discriminator: { by: "etag" },
      itemsPath: "$",
      itemId: "$.id",
      startAt: "earliest",
      retry: { attempts: 0 },
      ...config,
    },
  });

const TOTAL_MS = 60_000;

/** Lets the call time out as soon as it arrives. */
function neverRespond(): Promise<never> {
  vi.advanceTimersByTime(TOTAL_MS);
  return new Promise(() => {});
}

const idsOf = (rig: PollRig): string[] => rig.log.map(({ id }) => id);

describe("a poll with conditional requests", () => {
  it("sends If-None-Match and If-Modified-Since, and treats a 304 response as no new items", async () => {
    const lastModified = "Sat, 31 Jan 2026 09:00:00 GMT";
    const first = await server
      .forGet("/rows")
      .once()
      .thenJson(200, [{ id: 1 }], { ETag: '"one"', "Last-Modified": lastModified });
    const same = await server
      .forGet("/rows")
      .withHeaders({ "if-none-match": '"one"', "if-modified-since": lastModified })
      .thenReply(304);
    const rig = rigOf();
    for (let polls = 0; polls < 3; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect((await first.getSeenRequests()).map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
    ]);
    expect(await same.getSeenRequests()).toHaveLength(2);
    expect(idsOf(rig)).toEqual(["1"]);

    await server.forGet("/rows").thenJson(200, [{ id: 2 }, { id: 1 }], { ETag: '"two"' });
    server.reset();
    await server.forGet("/rows").thenJson(200, [{ id: 2 }, { id: 1 }], { ETag: '"two"' });
    await rig.poll();
    expect(idsOf(rig)).toEqual(["1", "2"]);
  });

  it("does not send an ETag that was received for an earlier cursor", async () => {
    const config: Partial<Config> = {
      discriminator: { by: "sequence", path: "$.id" },
      request: { url: server.urlFor("/rows"), query: { since: "{{cursor}}" } },
      conditional: true,
    };
    await server
      .forGet("/rows")
      .withExactQuery("")
      .thenJson(200, [{ id: 1 }], { ETag: '"a"' });
    const moved = await server.forGet("/rows").withExactQuery("?since=1").thenJson(200, [], { ETag: '"a"' });
    const rig = rigOf(config);
    for (let polls = 0; polls < 3; polls++) expect(await rig.poll()).toEqual({ kind: "done" });
    expect((await moved.getSeenRequests()).map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      '"a"',
    ]);
  });

  it("remembers the known items across several 304 responses", async () => {
    let nowMs = Date.UTC(2026, 0, 1);
    await server
      .forGet("/rows")
      .once()
      .thenJson(200, [{ id: 1 }], { ETag: '"a"' });
    await server.forGet("/rows").withHeaders({ "if-none-match": '"a"' }).times(3).thenReply(304);
    await server.forGet("/rows").thenJson(200, [{ id: 2 }, { id: 1 }], { ETag: '"b"' });
    const discriminator = { by: "seenSet", maxAgeSeconds: 86_400 } as const;
    const rig = new PollRig({
      config: { ...(rigOf().config as Config), discriminator, conditional: true },
      clock: () => nowMs,
    });
    for (let polls = 0; polls < 5; polls++) {
      await rig.poll();
      nowMs += 80_000_000;
    }
    expect(idsOf(rig)).toEqual(["1", "2"]);
  });

  it("does not send an ETag after an interrupted poll", async () => {
    const config: Partial<Config> = {
      discriminator: { by: "seenSet" },
      order: "descending",
      conditional: true,
      pagination: { by: "linkHeader" },
    };
    const headers = { ETag: '"a"', Link: '</rows?page=2>; rel="next"' };
    const first = await server
      .forGet("/rows")
      .withExactQuery("")
      .thenJson(200, [{ id: 2 }], headers);
    await server.forGet("/rows").withExactQuery("?page=2").once().thenCloseConnection();
    await server
      .forGet("/rows")
      .withExactQuery("?page=2")
      .thenJson(200, [{ id: 1 }]);
    const rig = rigOf(config);
    expect(await rig.poll()).toMatchObject({ kind: "failed", code: "reset" });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(await rig.poll()).toEqual({ kind: "done" });
    const etags = (await first.getSeenRequests()).map(({ headers }) => headers["if-none-match"]);
    expect(etags).toEqual([undefined, undefined, '"a"']);
    expect(idsOf(rig)).toEqual(["1", "2"]);
  });
});

describe("a poll of an HTTP server", () => {
  it.each<[string, () => Promise<unknown>, string]>([
    ["closes the connection", () => server.forGet("/rows").once().thenCloseConnection(), "reset"],
    ["resets the connection", () => server.forGet("/rows").once().thenResetConnection(), "reset"],
    ["does not respond", () => server.forGet("/rows").once().thenCallback(neverRespond), "timeout"],
  ])("fails if the server %s, and the next poll publishes all items", async (_, prepare, code) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await prepare();
    await server.forGet("/rows").thenJson(200, [{ id: 1 }]);
    const rig = rigOf({ timeouts: { totalMs: TOTAL_MS } });
    expect(await rig.poll()).toMatchObject({ kind: "failed", code });
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1"]);
  });

  it("follows redirects, and fails if redirects are not allowed", async () => {
    await server.forGet("/rows").thenReply(302, "", { location: "/moved" });
    await server.forGet("/moved").thenJson(200, [{ id: 1 }]);
    const rig = rigOf();
    expect(await rig.poll()).toEqual({ kind: "done" });
    expect(idsOf(rig)).toEqual(["1"]);
    expect(await rigOf({ redirects: 0 }).poll()).toMatchObject({
      kind: "failed",
      code: "redirects",
      isRejection: true,
    });
  });
});
