import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { pullSettings } from "../../src/channels/pull-settings.ts";
import type { DryRun } from "../../src/channels/source.ts";
import { settleRemovals } from "../../src/data/removals.ts";
import { listSourceTopics } from "../../src/data/sources.ts";
import { clearRemoval } from "../../src/delivery/clear-removal.ts";
import { commonSettings } from "../../src/event/channel.ts";
import { createSourceBus } from "../../src/gateway/sources.ts";
import { countingKind, createUpstream, deliveryOf } from "../channels/sources-support.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";

/** What the polled kind is asked for, and what it answers. */
const asked: { cursor: string | undefined }[] = [];
const polled: ChannelKind = {
  ...countingKind(createUpstream()),
  kind: "polling",
  settings: z.strictObject({ ...commonSettings, ...pullSettings }),
  start: async () => ({
    polled: {
      schedule: () => ({ everySeconds: 60, jitter: 0 }),
      origin: () => "https://feed.example",
      poll: async () => ({ kind: "done" }),
      dryRun: async ({ cursor }): Promise<DryRun> => {
        asked.push({ cursor });
        const delivery = { ...deliveryOf(3), body: Buffer.from('[{"n":3},{"x":4}]') };
        return {
          request: { method: "GET", url: "https://feed.example/?token=***", headers: {}, body: null },
          response: { status: 200, headers: {}, bytes: 20 },
          deliveries: [delivery],
          cursor: "4",
          end: { kind: "failed", code: "status", message: "503", notBeforeMs: 1_000 },
        };
      },
    },
    async [Symbol.asyncDispose]() {},
  }),
};

let spine: TestSpine;
beforeAll(async () => {
  spine = await startTestSpine({ extraKinds: [countingKind(createUpstream()), polled] });
});
afterAll(() => spine[Symbol.asyncDispose]());

async function install(kind: "sse" | "polling" | "webhook", config: object = {}) {
  const app = await spine.install({ uid: "in", kind, config, events: [{ type: "tick", idPath: "$.n" }] });
  const [{ id }] = app.channels;
  const { number } = await spine.api.database.db
    .selectFrom("channels")
    .select("number")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const topics = await listSourceTopics(spine.api.database.db, number);
  const bus = createSourceBus(spine.redis);
  async function take() {
    const taken = await bus.positions.takeOver({ number, topics });
    if (taken.kind !== "taken") throw new Error("it is to be left alone");
    return taken;
  }
  return { number, bus, take, path: `/apps/${app.id}/channels/${id}/source` };
}

describe("a source that never ran", () => {
  it("waits, has no cursor, and no owner", async () => {
    const { path } = await install("sse");
    const { status, body } = await spine.api.call("GET", path);
    expect(status).toBe(200);
    expect(body).toEqual({
      ...{ state: "waiting", since: expect.any(String), owner: null, silent: false },
      ...{ lastEventAt: null, lastError: null, lagMs: null, nextPollAt: null },
      cursor: { value: null, version: 0, updatedAt: null },
    });
  });

  it("is nothing where others send to the channel, or another organization asks", async () => {
    const { path } = await install("webhook");
    for (const [method, below, body] of [
      ["GET", "", undefined],
      ["GET", "/cursor", undefined],
      ["PUT", "/cursor", { value: 1 }],
      ["DELETE", "/cursor", undefined],
      ["POST", "/dry-run", {}],
    ] as const) {
      const { status } = await spine.api.call(method, path + below, body);
      expect([method, below, status]).toEqual([method, below, 404]);
    }
    const stranger = spine.api.as(await spine.api.strangerKey());
    const { path: theirs } = await install("sse");
    expect((await stranger("GET", theirs)).status).toBe(404);
    expect((await stranger("PUT", `${theirs}/cursor`, { value: 1 })).status).toBe(404);
  });
});

describe("the state of a source", () => {
  it("is what its owner tells, as long as that worker is there", async () => {
    const { number, bus, take, path } = await install("sse");
    const { epoch } = await take();
    await bus.leases.beat("wk_1", { ttlMs: 60_000, most: 256 });
    const facts = { state: "open", owner: "wk_1", lagMs: 7, lastEventAtMs: 1_000 } as const;
    await bus.states.write(number, epoch, facts, 500);
    expect((await spine.api.call("GET", path)).body).toMatchObject({
      ...{ state: "open", owner: "wk_1", lagMs: 7, since: "1970-01-01T00:00:00.500Z" },
      lastEventAt: "1970-01-01T00:00:01.000Z",
    });
    await bus.leases.leave("wk_1");
    expect((await spine.api.call("GET", path)).body).toMatchObject({ state: "waiting", owner: "wk_1" });
  });

  it("is that of its channel where that was stopped", async () => {
    const { path } = await install("sse");
    await spine.api.call("POST", path.replace(/source$/, "pause"), {});
    expect((await spine.api.call("GET", path)).body.state).toBe("paused");
  });

  it("is silent where no event came for longer than was expected", async () => {
    const { number, path } = await install("sse", { expectEverySeconds: 60 });
    expect((await spine.api.call("GET", path)).body.silent).toBe(false);
    const longAgo = new Date(Date.now() - 61_000);
    const { db } = spine.api.database;
    await db.updateTable("channels").set({ updatedAt: longAgo }).where("number", "=", number).execute();
    expect((await spine.api.call("GET", path)).body.silent).toBe(true);
    const [topic = ""] = await listSourceTopics(db, number);
    await spine.server.client.xadd(topic, "*", "id", "1");
    expect((await spine.api.call("GET", path)).body.silent).toBe(false);
  });
});

describe("the cursor of a source", () => {
  it("is set, at the version that is meant, and told to the workers and the audit", async () => {
    const { number, take, path } = await install("sse");
    const set = await spine.api.call("PUT", `${path}/cursor`, { value: 5, version: 0 });
    expect([set.status, set.body]).toEqual([200, { value: 5, version: 1, updatedAt: expect.any(String) }]);
    expect((await spine.api.call("PUT", `${path}/cursor`, { value: 6, version: 0 })).status).toBe(409);
    expect((await spine.api.call("GET", `${path}/cursor`)).body.value).toBe(5);
    expect((await take()).value).toBe("5");
    const { db } = spine.api.database;
    const changes = await db.selectFrom("changes").select("key").where("kind", "=", "source").execute();
    // The write that was refused is told to nobody.
    expect(changes.filter(({ key }) => key === String(number))).toHaveLength(1);
    const audit = await db.selectFrom("audit").select("fields").where("entity", "=", "channel").execute();
    expect(audit.map(({ fields }) => fields)).toContainEqual(["cursor"]);
  });

  it("is refused where its kind cannot read it, with the field that is wrong", async () => {
    const { path } = await install("sse");
    const { status, body } = await spine.api.call("PUT", `${path}/cursor`, { value: "five" });
    expect([status, body.details]).toEqual([400, [{ path: "value", message: "must be a number" }]]);
    expect((await spine.api.call("PUT", `${path}/cursor`, {})).status).toBe(400);
  });

  it("is reset: the source begins anew", async () => {
    const { take, path } = await install("sse");
    const before = await take();
    await spine.api.call("PUT", `${path}/cursor`, { value: 5 });
    expect((await spine.api.call("DELETE", `${path}/cursor`)).status).toBe(200);
    expect((await spine.api.call("GET", `${path}/cursor`)).body).toMatchObject({ value: null, version: 2 });
    const after = await take();
    expect(after.value).toBeUndefined();
    expect(after.startedAtMs).toBeGreaterThanOrEqual(before.startedAtMs);
  });
});

describe("a dry run", () => {
  it("shows the call and what each item would become, and does nothing", async () => {
    const { bus, number, path } = await install("polling", { itemsPath: "$[*]" });
    await spine.api.call("PUT", `${path}/cursor`, { value: 2 });
    const { status, body } = await spine.api.call("POST", `${path}/dry-run`, {});
    expect([status, asked.at(-1)]).toEqual([200, { cursor: "2" }]);
    expect(body).toMatchObject({
      request: { url: "https://feed.example/?token=***" },
      response: { status: 200 },
      items: [
        { item: 0, events: [{ id: "3", type: "tick", data: '{"n":3}' }], failures: [] },
        { item: 1, events: [], failures: [{ reason: "id_missing" }] },
      ],
      ...{ total: 2, cursor: 4 },
      end: { kind: "failed", code: "status", message: "503", notBefore: "1970-01-01T00:00:01.000Z" },
    });
    expect((await bus.positions.read(number)).value).toBe("2");
    const [topic = ""] = await listSourceTopics(spine.api.database.db, number);
    expect(await spine.server.client.exists(topic)).toBe(0);
  });

  it("begins at another cursor where one is given, which must fit", async () => {
    const { path } = await install("polling");
    await spine.api.call("POST", `${path}/dry-run`, { cursor: 9 });
    expect(asked.at(-1)).toEqual({ cursor: "9" });
    const { status, body } = await spine.api.call("POST", `${path}/dry-run`, { cursor: "x" });
    expect([status, body.details]).toEqual([400, [{ path: "cursor", message: "must be a number" }]]);
  });

  it("is not to be had of a stream", async () => {
    const { path } = await install("sse");
    expect((await spine.api.call("POST", `${path}/dry-run`, {})).status).toBe(409);
  });
});

it("nothing of a source stays in Redis once its channel is deleted", async () => {
  const { number, bus, take, path } = await install("sse");
  const { epoch } = await take();
  await bus.states.write(number, epoch, { state: "open" }, 1);
  const [channel] = path.split("/source");
  await spine.api.call("DELETE", channel ?? "");
  const deps = { ...spine, quarantine: spine.path.quarantine };
  const { signal } = new AbortController();
  await settleRemovals(spine.api.database.db, (removal) => clearRemoval(deps, removal), { signal });
  expect(await spine.server.client.keys(`inlet:{c.${number}}*`)).toEqual([]);
  // Whoever still believes to run it brings nothing back.
  expect(await bus.states.write(number, epoch, { state: "open" }, 1)).toBe(false);
});
