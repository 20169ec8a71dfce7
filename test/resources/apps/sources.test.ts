import { describe, expect, it } from "vitest";
import { z } from "zod";
import { signedBytesNotesKey, wakesKey } from "../../../src/bus/keys.ts";
import type { PollRecord, SourceFacts } from "../../../src/bus/sources/source-states.ts";
import type { ChannelKind } from "../../../src/channels/kind.ts";
import { pullFields } from "../../../src/channels/pull/pull-fields.ts";
import type { DryRun } from "../../../src/channels/source.ts";
import { listTopicsOf } from "../../../src/data/channels/topics.ts";
import { settleRemovals } from "../../../src/data/removals.ts";
import { type ChannelState, commonFields } from "../../../src/event/channel.ts";
import { createSourceBus } from "../../../src/gateway/sources.ts";
import { clearRemoval } from "../../../src/maintenance/clear-removal.ts";
import { countingKind, createUpstream, deliveryOf } from "../../channels/pull/sources-support.ts";
import { givenChannel, numberOf } from "../../support/channels.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";

/** The cursors at which dry runs of the polled kind below started. */
const dryRuns: { cursor: string | undefined }[] = [];
const polled: ChannelKind = {
  ...countingKind(createUpstream()),
  kind: "polling",
  configSchema: z.strictObject({ ...commonFields, ...pullFields }),
  start: async () => ({
    polled: {
      schedule: () => ({ everySeconds: 60, jitter: 0 }),
      origin: () => "https://feed.example",
      poll: async () => ({ kind: "done" }),
      dryRun: async ({ cursor }): Promise<DryRun> => {
        dryRuns.push({ cursor });
        const delivery = { ...deliveryOf(3), body: Buffer.from('[{"n":3},{"x":4}]') };
        return {
          request: { method: "GET", url: "https://feed.example/?token=***", headers: {}, body: null },
          response: { status: 200, headers: {}, bytes: 20 },
          deliveries: [delivery],
          known: 7,
          cursor: "4",
          end: { kind: "failed", code: "status", message: "503", notBeforeMs: 1_000 },
        };
      },
    },
    async [Symbol.asyncDispose]() {},
  }),
};

const spine = opened(() => startTestSpine({ extraKinds: [countingKind(createUpstream()), polled] }));

async function install(kind: "sse" | "polling" | "webhook", config: object = {}) {
  const channel = await givenChannel(spine, { kind, config, events: [{ type: "tick", idPath: "$.n" }] });
  const number = await numberOf(spine, channel.id);
  const topics = await listTopicsOf(spine.api.database.db, number);
  const bus = createSourceBus(spine.redis);
  async function take() {
    const taken = await bus.positions.takeOver({ number, topics });
    if (taken.kind !== "acquired") throw new Error("the source could not be taken over");
    return taken;
  }
  return { number, bus, take, path: `${channel.path}/source`, appId: channel.appId };
}

describe("a source that has never run", () => {
  it("is in state idle, and has neither a cursor nor a worker as its owner", async () => {
    const { path } = await install("sse");
    const { status, body } = await spine.api.call("GET", path);
    expect(status).toBe(200);
    expect(body).toEqual({
      state: "idle",
      stateReason: "noSubscription",
      health: "stopped",
      since: expect.any(String),
      owner: null,
      silent: false,
      wakes: null,
      lastEventAt: null,
      lastError: null,
      lagMs: null,
      nextPollAt: null,
      reconcile: null,
      cursor: { value: null, version: 0, updatedAt: null },
    });
  });

  it("does not exist for a channel that receives requests", async () => {
    const { path } = await install("webhook");
    for (const [method, below, body] of [
      ["GET", "", undefined],
      ["GET", "/polls", undefined],
      ["GET", "/cursor", undefined],
      ["PUT", "/cursor", { value: 1 }],
      ["DELETE", "/cursor", undefined],
      ["POST", "/dry-run", {}],
    ] as const) {
      const { status } = await spine.api.call(method, path + below, body);
      expect([method, below, status]).toEqual([method, below, 404]);
    }
  });
});

describe("the status of a source", () => {
  it("contains the state that its worker reported, until that worker stops", async () => {
    const { number, bus, take, path } = await install("sse");
    await spine.api.call.post(`${path.split("/channels")[0]}/events/subscribe`, { eventUid: "*" });
    const { epoch } = await take();
    await bus.leases.renew("wk_1", { ttlMs: 3_600_000, most: 256 });
    const facts = { state: "open", owner: "wk_1", lagMs: 7, lastEventAtMs: 1_000 } as const;
    await bus.states.write(number, epoch, facts, 500);
    expect((await spine.api.call("GET", path)).body).toMatchObject({
      state: "open",
      owner: "wk_1",
      lagMs: 7,
      since: "1970-01-01T00:00:00.500Z",
      lastEventAt: "1970-01-01T00:00:01.000Z",
    });
    await bus.leases.leave("wk_1");
    expect((await spine.api.call("GET", path)).body).toMatchObject({ state: "waiting", owner: "wk_1" });
  });

  it("has a health, which depends on its last run and on its channel", async () => {
    const { number, bus, take, path } = await install("sse");
    const { db } = spine.api.database;
    await spine.api.call.post(`${path.split("/channels")[0]}/events/subscribe`, { eventUid: "*" });
    const { epoch } = await take();
    const atMs = Date.now();
    const show = async (facts: SourceFacts, state: ChannelState = "active") => {
      await bus.states.write(number, epoch, facts, atMs);
      await db.updateTable("channels").set({ state }).where("number", "=", number).execute();
      const { health, stateReason, lastError } = await spine.api.call.get(path);
      return [health, stateReason, lastError?.code];
    };
    const lastError = { code: "http_429", message: "too many", atMs };
    const lastWarning = { code: "gap", message: "a gap", atMs };
    expect(await show({ state: "open" })).toEqual(["healthy", null, undefined]);
    expect(await show({ state: "waiting", lastError })).toEqual(["retrying", null, "http_429"]);
    expect(await show({ state: "connecting" })).toEqual(["retrying", null, "http_429"]);
    expect(await show({ state: "error" }, "error")).toEqual(["failing", null, "http_429"]);
    expect(await show({ state: "needsReauth" }, "needsReauth")).toEqual(["failing", null, "http_429"]);
    expect(await show({ state: "open", lastError: null, lastWarning })).toEqual(["healthy", null, "gap"]);
    const old = { ...lastWarning, atMs: atMs - 86_400_000 };
    expect(await show({ state: "open", lastWarning: old })).toEqual(["healthy", null, undefined]);
    expect(await show({ state: "paused" }, "paused")).toEqual(["stopped", "finished", undefined]);
    expect(await show({ state: "waiting" }, "paused")).toEqual(["stopped", null, undefined]);
    expect(await show({}, "needsSetup")).toEqual(["stopped", "needsSetup", undefined]);
  });

  it("is paused while its channel is paused", async () => {
    const { path } = await install("sse");
    await spine.api.call("POST", path.replace(/source$/, "pause"), {});
    expect((await spine.api.call("GET", path)).body.state).toBe("paused");
  });

  it("shows that the source is silent if no event arrives within expectEverySeconds", async () => {
    const { number, path } = await install("sse", { expectEverySeconds: 3_600 });
    expect((await spine.api.call("GET", path)).body.silent).toBe(false);
    const longAgo = new Date(Date.now() - 3_601_000);
    const { db } = spine.api.database;
    await db.updateTable("channels").set({ updatedAt: longAgo }).where("number", "=", number).execute();
    expect((await spine.api.call("GET", path)).body.silent).toBe(true);
    const [topic = ""] = await listTopicsOf(db, number);
    await spine.server.client.xadd(topic, "*", "id", "1");
    expect((await spine.api.call("GET", path)).body.silent).toBe(false);
  });
});

describe("the cursor of a source", () => {
  it("is set only if it still has the version given in the request, and each change is recorded in the audit log", async () => {
    const { number, take, path } = await install("sse");
    const set = await spine.api.call("PUT", `${path}/cursor`, { value: 5, version: 0 });
    expect([set.status, set.body]).toEqual([200, { value: 5, version: 1, updatedAt: expect.any(String) }]);
    expect((await spine.api.call("PUT", `${path}/cursor`, { value: 6, version: 0 })).status).toBe(409);
    expect((await spine.api.call("GET", `${path}/cursor`)).body.value).toBe(5);
    expect((await take()).value).toBe("5");
    const { db } = spine.api.database;
    const changes = await db.selectFrom("changes").select("key").where("kind", "=", "source").execute();
    // The rejected write adds no row to the change feed.
    expect(changes.filter(({ key }) => key === String(number))).toHaveLength(1);
    const audit = await db.selectFrom("audit").select("fields").where("entity", "=", "channel").execute();
    expect(audit.map(({ fields }) => fields)).toContainEqual(["cursor"]);
  });

  it("is rejected if it is not a valid cursor for the channel kind", async () => {
    const { path } = await install("sse");
    const { status, body } = await spine.api.call("PUT", `${path}/cursor`, { value: "five" });
    expect([status, body.details]).toEqual([400, [{ path: "value", message: "must be a number" }]]);
  });

  it("is removed by a reset, so that the next worker starts without a cursor", async () => {
    const { take, path } = await install("sse");
    const before = await take();
    await spine.api.call("PUT", `${path}/cursor`, { value: 5 });
    await spine.api.call.delete(`${path}/cursor`);
    expect((await spine.api.call("GET", `${path}/cursor`)).body).toMatchObject({ value: null, version: 2 });
    const after = await take();
    expect(after.value).toBeUndefined();
    expect(after.startedAtMs).toBeGreaterThanOrEqual(before.startedAtMs);
  });
});

describe("a dry run of a source", () => {
  it("returns the upstream request and the resulting events, without moving the cursor or publishing", async () => {
    const { bus, number, path } = await install("polling", { itemsPath: "$[*]" });
    await spine.api.call("PUT", `${path}/cursor`, { value: 2 });
    const { status, body } = await spine.api.call("POST", `${path}/dry-run`, {});
    expect([status, dryRuns.at(-1)]).toEqual([200, { cursor: "2" }]);
    expect(body).toMatchObject({
      request: { url: "https://feed.example/?token=***" },
      response: { status: 200 },
      items: [
        { item: 0, events: [{ id: "3", type: "tick", data: '{"n":3}' }], failures: [] },
        { item: 1, events: [], failures: [{ reason: "id_missing" }] },
      ],
      total: 2,
      known: 7,
      cursor: 4,
      end: { kind: "failed", code: "status", message: "503", notBefore: "1970-01-01T00:00:01.000Z" },
    });
    expect((await bus.positions.read(number)).value).toBe("2");
    const [topic = ""] = await listTopicsOf(spine.api.database.db, number);
    expect(await spine.server.client.exists(topic)).toBe(0);
  });

  it("starts at the cursor in the request, and rejects an invalid cursor", async () => {
    const { path } = await install("polling");
    await spine.api.call("POST", `${path}/dry-run`, { cursor: 9 });
    expect(dryRuns.at(-1)).toEqual({ cursor: "9" });
    const { status, body } = await spine.api.call("POST", `${path}/dry-run`, { cursor: "x" });
    expect([status, body.details]).toEqual([400, [{ path: "cursor", message: "must be a number" }]]);
  });

  it("is rejected for a channel that reads an event stream (SSE)", async () => {
    const { path } = await install("sse");
    expect((await spine.api.call("POST", `${path}/dry-run`, {})).status).toBe(409);
  });
});

const pollAt = (atMs: number): PollRecord => ({
  atMs,
  durationMs: 5,
  requests: 1,
  method: "GET",
  status: undefined,
  items: 0,
  published: 0,
  error: "unreachable",
});

it("the newest 20 polls of a source are listed in pages, newest first", async () => {
  const { number, bus, take, path } = await install("polling");
  const { epoch } = await take();
  for (let n = 1; n <= 22; n++) await bus.states.write(number, epoch, { poll: pollAt(n * 1_000) }, n);
  const { body, headers } = await spine.api.call("GET", `${path}/polls?limit=2&offset=18`);
  expect(headers.get("x-total-count")).toBe("20");
  expect(body).toEqual(
    ["1970-01-01T00:00:04.000Z", "1970-01-01T00:00:03.000Z"].map((at) => ({
      ...{ at, durationMs: 5, requests: 1, method: "GET", status: null },
      ...{ items: 0, published: 0, error: "unreachable" },
    })),
  );
});

it("a source leaves no keys in Redis after its channel is deleted, and its worker can no longer write any", async () => {
  const { number, bus, take, path, appId } = await install("sse");
  const { epoch } = await take();
  await bus.states.write(number, epoch, { state: "open", poll: pollAt(1) }, 1);
  await spine.server.client.hset(signedBytesNotesKey(number), "wa", "1");
  const ofWakes = wakesKey({ appId, uid: "main" });
  await spine.server.client.hset(ofWakes, "n", "1");
  await spine.api.call.delete(path.replace(/\/source$/, ""));
  const deps = { ...spine, ...spine.path };
  const { signal } = new AbortController();
  await settleRemovals(spine.api.database.db, (removal) => clearRemoval(deps, removal), { signal });
  expect(await spine.server.client.keys(`inlet:{?.${number}}*`)).toEqual([]);
  expect(await spine.server.client.exists(ofWakes)).toBe(0);
  expect(await bus.states.write(number, epoch, { state: "open" }, 1)).toBe(false);
});
