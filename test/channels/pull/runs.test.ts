import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { OpenRun, SourceObservation } from "../../../src/channels/pull/open-run.ts";
import { createSourcePace } from "../../../src/channels/pull/source-pace.ts";
import { createSourceRuns, type SourceRuns } from "../../../src/channels/pull/source-runs.ts";
import { setFoundState } from "../../../src/data/channels/channel-states.ts";
import { recordFirstRun } from "../../../src/data/channels/sources.ts";
import type { IngestResult } from "../../../src/event/ingest.ts";
import { createSourceBus } from "../../../src/gateway/sources.ts";
import { givenChannel, numberOf } from "../../support/channels.ts";
import { itDeep } from "../../support/deep-run.ts";
import { listEntries } from "../../support/entries.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { countingKind, createUpstream } from "./sources-support.ts";

const { signal } = new AbortController();
let runs: SourceRuns;
let seen: SourceObservation[];
/** The rate of the organization's sources, by a clock that advances only while they wait. */
let itemsPerSecond: number | undefined;
let paceMs = 1_000_000;
const spine = opened(() => startTestSpine({ extraKinds: [countingKind(createUpstream())] }));
const bus = opened(() => createSourceBus(spine.redis));
beforeAll(async () => {
  const { db } = spine.api.database;
  runs = createSourceRuns({
    ...bus,
    findSource: spine.path.findSource,
    recordFirstRun: (number) => recordFirstRun(db, number),
    credentialsOf: () => {
      throw new Error("there are no connections");
    },
    pace: createSourcePace({
      deliveriesPerSecondOf: () => itemsPerSecond,
      nowMs: () => paceMs,
      sleep: async (ms) => {
        paceMs += ms;
      },
    }),
    gather: spine.path.gatherFetched,
    move: spine.path.movePosition,
    setState: (channel, state) => setFoundState(db, channel, state, Date.now()),
    isPipelined: true,
    clock: Date.now,
    observe: (event) => void seen.push(event),
  });
});
beforeEach(() => {
  itemsPerSecond = undefined;
  seen = [];
});

const TICK = { type: "tick", idPath: "$.id", payloadPath: "$.v" };

async function install(config: object = {}, event: object = TICK) {
  const { id, appId, topicOf } = await givenChannel(spine, {
    kind: "sse",
    events: [event],
    config: { run: "always", ...config },
  });
  const number = await numberOf(spine, id);
  const topic = topicOf("tick");
  async function open(): Promise<OpenRun> {
    const opening = await runs.openRun(number, { signal, owner: "wk_1" });
    if (opening.kind !== "open") throw new Error(JSON.stringify(opening));
    return opening.open;
  }
  return {
    appId,
    channelId: id,
    number,
    open,
    cursor: async () => (await bus.positions.read(number)).value,
    values: async () => {
      const entries = await listEntries(spine.redis, topic);
      return entries.map(({ fields }) => Number(fields.data));
    },
    quarantined: () => spine.api.call.get(`/apps/${appId}/quarantine`),
  };
}

/** Creates a delivery with these items. */
const delivery = (...items: readonly (readonly [id: string, v: number])[]) => {
  const bodies = items.map(([id, v]) => ({ id, v }));
  return {
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(bodies.length === 1 ? bodies[0] : bodies)),
    arrivedAtMs: Date.now(),
  };
};
const many = (from: number, count: number) =>
  delivery(...Array.from({ length: count }, (_, i) => [`n${from + i}`, from + i] as const));

function send(run: OpenRun, fetched: ReturnType<typeof delivery>, cursor = "sent"): Promise<IngestResult> {
  return run.ingest(fetched, { signal, cursor });
}

/** Sends deliveries that arrive together, with the cursor `at <n>` after the nth. Returns the results and the cursors written. */
async function sendAll(run: OpenRun, deliveries: readonly ReturnType<typeof delivery>[]) {
  const cursors: string[] = [];
  const cursorAfter = (n: number): string => {
    cursors.push(`at ${n}`);
    return `at ${n}`;
  };
  const results = await run.ingestAll(deliveries, { cursorAfter, signal });
  const outcomes = results.map((result) => (result.kind === "accepted" ? result.outcome : result));
  return { outcomes, cursors };
}

describe("deliveries of a pull source that are sent as one batch", () => {
  it("are published in order by one write that also moves the cursor", async () => {
    const source = await install();
    const open = await source.open();
    const { outcomes, cursors } = await sendAll(
      open,
      Array.from({ length: 100 }, (_, i) => delivery([`a${i}`, i])),
    );
    expect(outcomes).toHaveLength(100);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ received: 1, published: 1 });
    expect(cursors).toEqual(["at 99"]);
    expect(await source.values()).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(await source.cursor()).toBe("at 99");
  });

  it("are split into several writes if needed, and stay in order with earlier and later deliveries", async () => {
    const source = await install({ itemsPath: "$[*]" });
    const open = await source.open();
    const before = send(open, delivery(["b", 0], ["c", 1]), "before");
    const all = sendAll(open, [many(2, 300), many(302, 300), delivery(["x", 602], ["y", 603])]);
    const after = send(open, delivery(["z", 604], ["w", 605]), "after");
    await Promise.all([before, after]);
    expect((await all).cursors).toEqual(["at 0", "at 2"]);
    expect(await source.values()).toEqual(Array.from({ length: 606 }, (_, i) => i));
    expect(await source.cursor()).toBe("after");
  });

  itDeep(
    "are all published in order, even if 150 of them are too large to be parsed on the main thread",
    async () => {
      const source = await install({}, { ...TICK, idPath: "$..id" });
      const open = await source.open();
      const large = (v: number) => ({
        ...delivery(),
        body: Buffer.from(JSON.stringify({ id: `l${v}`, v, text: "x".repeat(140_000) })),
      });
      const { outcomes } = await sendAll(
        open,
        Array.from({ length: 150 }, (_, v) => large(v)),
      );
      expect(outcomes).toHaveLength(150);
      expect(await source.values()).toEqual(Array.from({ length: 150 }, (_, v) => v));
      expect(await source.cursor()).toBe("at 149");
    },
  );

  it("are published or quarantined one by one, so that an invalid delivery does not affect the rest of the batch", async () => {
    const source = await install();
    const open = await source.open();
    const broken = { ...delivery(), body: Buffer.from("{") };
    const { outcomes, cursors } = await sendAll(open, [
      delivery(["a", 1]),
      broken,
      delivery(["b", 2]),
      delivery(["a", 1]),
      delivery(["a", 7]),
      delivery(["c", 3]),
      delivery(["b", 8]),
    ]);
    expect(outcomes).toMatchObject([
      { published: 1 },
      { quarantined: 1, quarantine: [{ reason: "invalid_body" }] },
      { published: 1 },
      { duplicates: 1, published: 0 },
      { quarantined: 1, quarantine: [{ reason: "id_conflict" }] },
      { published: 1 },
      { quarantined: 1, quarantine: [{ reason: "id_conflict" }] },
    ]);
    expect(cursors).toEqual(["at 0", "at 1", "at 6"]);
    expect(await source.values()).toEqual([1, 2, 3]);
    expect(await source.cursor()).toBe("at 6");
    expect(await source.quarantined()).toHaveLength(3);
  });

  it("do not move the cursor if their write is rejected", async () => {
    const source = await install();
    const old = await source.open();
    await send(old, delivery(["a", 1]), "1");
    const next = await source.open();
    const late = [sendAll(old, [delivery(["b", 2]), delivery(["c", 3])]), sendAll(old, [delivery(["d", 4])])];
    for (const one of await Promise.allSettled(late))
      expect(one).toMatchObject({ status: "rejected", reason: { name: "StaleSourceError" } });
    expect(await source.values()).toEqual([1]);
    expect(await source.cursor()).toBe("1");
    await sendAll(next, [delivery(["b", 2]), delivery(["c", 3])]);
    expect(await source.values()).toEqual([1, 2, 3]);
  });
});

describe("a run of a pull source", () => {
  it("publishes concurrent deliveries in call order and moves the cursor to the last one", async () => {
    const source = await install();
    const open = await source.open();
    await Promise.all(Array.from({ length: 100 }, (_, i) => send(open, delivery([`a${i}`, i]), `at ${i}`)));
    expect(await source.values()).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(await source.cursor()).toBe("at 99");
    await open.end(undefined);
    expect((await source.open()).cursor).toBe("at 99");
  });

  it("keeps the order of deliveries even if a delivery needs several writes", async () => {
    const source = await install({ itemsPath: "$[*]" });
    const open = await source.open();
    await Promise.all([
      send(open, many(0, 900), "one"),
      send(open, delivery(["x", 900], ["y", 901]), "two"),
      send(open, many(902, 700), "three"),
      send(open, delivery(["z", 1602], ["w", 1603]), "four"),
    ]);
    expect(await source.values()).toEqual(Array.from({ length: 1604 }, (_, i) => i));
    expect(await source.cursor()).toBe("four");
    expect(seen.filter(({ kind }) => kind === "refused")).toEqual([]);
  });

  it("quarantines an event with a conflicting id, and moves the cursor past that event", async () => {
    const source = await install();
    const open = await source.open();
    await send(open, delivery(["a", 1]), "1");
    await Promise.all([
      send(open, delivery(["a", 2]), "2"),
      send(open, delivery(["b", 3]), "3"),
      send(open, delivery(["c", 4]), "4"),
    ]);
    expect(await source.values()).toEqual([1, 3, 4]);
    expect(await source.cursor()).toBe("4");
    expect(await source.quarantined()).toMatchObject([{ reason: "id_conflict", count: 1 }]);
  });

  it("moves the cursor past duplicates and quarantined deliveries", async () => {
    const source = await install();
    const open = await source.open();
    await send(open, delivery(["a", 1]), "1");
    await send(open, delivery(["a", 1]), "again");
    expect(await source.cursor()).toBe("again");
    await send(open, { ...delivery(), body: Buffer.from("{") }, "broken");
    expect(await source.cursor()).toBe("broken");
    expect(await source.quarantined()).toMatchObject([{ reason: "invalid_body" }]);
    await open.moveTo("moved", { signal });
    expect(await source.cursor()).toBe("moved");
    expect(await source.values()).toEqual([1]);
  });

  it("stores only the newest heartbeats, even if the channel stores all items that match no definition", async () => {
    const source = await install({ onNoMatch: "quarantine" });
    const open = await source.open();
    const text = "x".repeat(1024 * 1024);
    const heartbeat = (n: number) => ({ ...delivery(), body: Buffer.from(`ping ${n} ${text}`) });
    const { outcomes } = await sendAll(
      open,
      Array.from({ length: 20 }, (_, n) => heartbeat(n)),
    );
    expect(outcomes).toEqual(Array(20).fill(expect.objectContaining({ quarantined: 1 })));
    const stored = await source.quarantined();
    expect(stored[0]).toMatchObject({ reason: "no_match" });
    expect(stored.length).toBeLessThan(20);
  });

  it("quarantines a whole delivery with too many items, and continues with the next delivery", async () => {
    const source = await install({ itemsPath: "$[*]" });
    const open = await source.open();
    const result = await send(open, many(0, 1_001), "past");
    expect(result).toMatchObject({ kind: "accepted", outcome: { quarantined: 1, published: 0 } });
    expect(await source.cursor()).toBe("past");
    expect((await source.quarantined())[0].detail).toMatch(/more than 1000 items/);
  });

  it("writes nothing more after a failed write, and the next run starts before the failed write", async () => {
    const source = await install();
    const open = await source.open();
    await send(open, delivery(["a", 1]), "1");
    const aborted = new AbortController();
    aborted.abort(new Error("given up"));
    const [failed, behind] = await Promise.allSettled([
      open.ingest(delivery(["b", 2]), { cursor: "2", signal: aborted.signal }),
      send(open, delivery(["c", 3]), "3"),
    ]);
    expect([failed.status, behind.status]).toEqual(["rejected", "rejected"]);
    await expect(send(open, delivery(["d", 4]), "4")).rejects.toThrow("given up");
    expect(await source.values()).toEqual([1]);
    expect((await source.open()).cursor).toBe("1");
  });

  it("has its writes rejected after another run takes over the source or a user sets the cursor", async () => {
    const source = await install();
    const old = await source.open();
    await send(old, delivery(["a", 1]), "1");
    const next = await source.open();
    const late = [send(old, delivery(["b", 2]), "2"), send(old, delivery(["c", 3]))];
    for (const one of await Promise.allSettled(late)) {
      expect(one).toMatchObject({ status: "rejected", reason: { name: "StaleSourceError" } });
    }
    expect(seen).toContainEqual(expect.objectContaining({ kind: "refused", stale: "epoch" }));
    await spine.api.call.put(`/apps/${source.appId}/channels/${source.channelId}/source/cursor`, {
      value: 7,
    });
    await expect(send(next, delivery(["d", 4]), "4")).rejects.toMatchObject({ stale: "epoch" });
    expect(await source.values()).toEqual([1]);
    expect(await source.cursor()).toBe("7");
  });

  it("does not change the channel's state after another run has taken over the source", async () => {
    const source = await install();
    const old = await source.open();
    await source.open();
    await old.end({ kind: "broken", code: "content_type", message: "text/html" });
    const channel = await spine.api.call.get(`/apps/${source.appId}/channels/${source.channelId}`);
    expect(channel.state).toBe("active");
    expect((await bus.states.read(source.number)).lastError).toBeUndefined();
  });

  it("does not report a lost cursor if the first attempt to acquire the source failed", async () => {
    const source = await install();
    const key = `inlet:{c.${source.number}}:cursor`;
    await spine.server.client.set(key, "of another type");
    await expect(source.open()).rejects.toThrow("WRONGTYPE");
    await spine.server.client.del(key);
    await source.open();
    expect(seen).toEqual([]);
  });

  it("reports a lost cursor after Redis was flushed, but not on the first run or after a reset", async () => {
    const source = await install();
    const lastWarning = async () => (await bus.states.read(source.number)).lastWarning?.code;
    const lost = () => seen.filter(({ kind }) => kind === "cursorLost").length;
    const first = await source.open();
    await send(first, delivery(["a", 1]), "1");
    await first.end({ kind: "done" });
    await spine.api.call.delete(`/apps/${source.appId}/channels/${source.channelId}/source/cursor`);
    await (await source.open()).end({ kind: "done" });
    expect([await lastWarning(), lost()]).toEqual([undefined, 0]);
    await spine.redis.call("flushdb", []);
    const after = await source.open();
    expect(after.cursor).toBeUndefined();
    await after.end({ kind: "done" });
    expect([await lastWarning(), lost()]).toEqual(["cursor_lost", 1]);
    await (await source.open()).end({ kind: "done" });
    expect(lost()).toBe(1);
  });

  it.each([
    ["http_410", {}, "error"],
    ["http_401", { stateIfPersistent: "needsReauth" }, "needsReauth"],
  ] as const)("that is rejected again and again for minutes (%s) changes the channel's state, which becomes active after a success", async (code, more, state) => {
    const source = await install({ run: "always" });
    const client = spine.redis;
    const key = `inlet:{c.${source.number}}:cursor`;
    const stateOf = async () =>
      (await spine.api.call.get(`/apps/${source.appId}/channels/${source.channelId}`)).state;
    async function rejectRun(): Promise<void> {
      const open = await source.open();
      await open.end({ kind: "failed", code, message: "no", isRejection: true, ...more });
    }
    for (let i = 0; i < 6; i++) await rejectRun();
    expect(await stateOf()).toBe("active");
    await client.call("hset", [key, "ws", Date.now() - 11 * 60_000]);
    await rejectRun();
    expect(await stateOf()).toBe(state);
    expect(await bus.states.read(source.number)).toMatchObject({ state, lastError: { code } });
    expect(seen).toContainEqual(expect.objectContaining({ kind: "stopped", state }));
    // The source is retried after 15 minutes, not earlier.
    const early = await runs.openRun(source.number, { signal, owner: "wk_2" });
    expect(early).toMatchObject({ kind: "backoff" });
    expect("waitMs" in early && early.waitMs > 14 * 60_000).toBe(true);
    await client.call("hdel", [key, "r"]);
    spine.path.rules.clear();
    const again = await source.open();
    await send(again, delivery(["a", 1]), "1");
    expect(await stateOf()).toBe("active");
    expect(seen).toContainEqual(expect.objectContaining({ kind: "recovered" }));
    await again.end({ kind: "done" });
    expect(await client.call("hexists", [key, "w"])).toBe(0);
  });

  it("clears the error of earlier runs at its first success, and keeps the last warning", async () => {
    const source = await install();
    const facts = () => bus.states.read(source.number);
    const fail = async () =>
      (await source.open()).end({ kind: "failed", code: "http_429", message: "too many" });
    await fail();
    expect((await facts()).lastError).toMatchObject({ code: "http_429" });
    const writing = await source.open();
    writing.warn("gap", "a gap");
    await send(writing, delivery(["a", 1]), "1");
    await writing.end(undefined);
    const written = await facts();
    expect([written.lastError, written.lastWarning?.code]).toEqual([undefined, "gap"]);
    await fail();
    await (await source.open()).end({ kind: "done" });
    expect((await facts()).lastError).toBeUndefined();
    await fail();
    await (await source.open()).end({ kind: "finished", message: "over" });
    expect(await facts()).toMatchObject({ state: "paused", lastError: undefined });
  });

  it("records its state, its last error and the time of the next run", async () => {
    const source = await install();
    const beganAtMs = Date.now();
    const first = await source.open();
    first.opened();
    await send(first, delivery(["a", 1]), "1");
    const nextAtMs = Date.now() + 3_600_000;
    await first.end({ kind: "failed", code: "reset", message: "cut" }, { nextAtMs });
    const facts = await bus.states.read(source.number);
    expect(facts).toMatchObject({
      state: "waiting",
      owner: "wk_1",
      lastError: { code: "reset", message: "cut" },
    });
    expect(facts.lastEventAtMs).toBeGreaterThanOrEqual(beganAtMs);
    expect(facts.nextAtMs).toBe(nextAtMs);
    const early = await runs.openRun(source.number, { signal, owner: "wk_2" });
    expect(early.kind).toBe("backoff");
    const fresh = await runs.openRun(source.number, { signal, owner: "wk_2", skipBackoff: true });
    expect(fresh).toMatchObject({ kind: "open", open: { failures: 0 } });
  });
});

describe("the rate limit for the pull sources of an organization", () => {
  it("counts the items of a delivery, and delays the next delivery if the rate was exceeded", async () => {
    const source = await install({ itemsPath: "$[*]" });
    const open = await source.open();
    itemsPerSecond = 100;
    const beganAtMs = paceMs;
    await send(open, many(0, 500), "one");
    expect(paceMs).toBe(beganAtMs);
    await send(open, delivery(["x", 500], ["y", 501]), "two");
    expect(paceMs - beganAtMs).toBeGreaterThanOrEqual(4_000);
    expect(paceMs - beganAtMs).toBeLessThan(4_100);
    expect(await source.values()).toHaveLength(502);
  });

  it("counts the items of concurrent deliveries before they are written, so that they cannot bypass the rate", async () => {
    const source = await install({ itemsPath: "$[*]" });
    const open = await source.open();
    // Pays off the debt left by the previous test.
    paceMs += 10_000;
    itemsPerSecond = 100;
    const beganAtMs = paceMs;
    await sendAll(open, [many(0, 400), many(400, 400), many(800, 400)]);
    expect(paceMs - beganAtMs).toBeGreaterThanOrEqual(7_000);
    expect(paceMs - beganAtMs).toBeLessThan(7_200);
    expect(await source.values()).toHaveLength(1_200);
  });
});
