import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SHARDS } from "../../src/bus/shard-leases.ts";
import { createSourceBus } from "../../src/gateway/sources.ts";
import { openTestRedis } from "../bus/support.ts";
import { startCuttableLink } from "../support/cuttable-link.ts";
import { until } from "../support/until.ts";
import {
  type InstalledSource,
  type SourceRig,
  startSourceRig,
  type TestWorker,
  TIMING,
  untilWritten,
  upTo,
} from "./sources-support.ts";

let rig: SourceRig;
let workers: TestWorker[] = [];

beforeAll(async () => {
  rig = await startSourceRig();
});
afterAll(() => rig[Symbol.asyncDispose]());
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  workers = [];
  const { db } = rig.spine.api.database;
  await db.updateTable("channels").set({ state: "paused" }).execute();
});

async function start(instead: Parameters<SourceRig["startWorker"]>[0] = {}): Promise<TestWorker> {
  const worker = await rig.startWorker(instead);
  workers.push(worker);
  return worker;
}

async function stop(worker: TestWorker): Promise<void> {
  workers = workers.filter((other) => other !== worker);
  await worker[Symbol.asyncDispose]();
}

function writeUpTo(sources: readonly InstalledSource[], n: number): void {
  for (const { number } of sources) rig.upstream.written.set(number, n);
}

const openOf = ({ number }: InstalledSource): number => rig.upstream.open.get(number) ?? 0;
const connectsOf = ({ number }: InstalledSource): number => rig.upstream.connects.get(number) ?? 0;
const sharesOf = (some: readonly TestWorker[]): readonly number[] =>
  some.map(({ sources }) => sources.shards().size).sort((a, b) => a - b);

async function untilShared(some: readonly TestWorker[], shares: readonly number[]): Promise<void> {
  await until(() => sharesOf(some).join() === shares.join());
}

const untilOpen = (sources: readonly InstalledSource[]): Promise<void> =>
  until(() => sources.every((source) => openOf(source) === 1));

/** Nothing lost, doubled, or out of order; ids are not remembered, so that a second sending would be a second entry. */
async function expectWhole(sources: readonly InstalledSource[], n: number): Promise<void> {
  await untilWritten(rig, sources, n);
  for (const source of sources) expect(await rig.onTopic(source)).toEqual(upTo(n));
}

describe("the shards of the sources", () => {
  it("are all one worker's where there is only one, and even as soon as others come and go", async () => {
    const first = await start();
    await untilShared([first], [256]);
    const second = await start();
    const third = await start();
    await untilShared([first, second, third], [84, 86, 86]);
    const all = [first, second, third].flatMap(({ sources }) => [...sources.shards()]);
    expect(new Set(all).size).toBe(256);
    await stop(second);
    await untilShared([first, third], [128, 128]);
  });

  it("are handed over at once by a worker that is told to stop, though the rest of it is still ending", async () => {
    const first = await start();
    await untilShared([first], [256]);
    const second = await start();
    await untilShared([first, second], [128, 128]);
    const beganAtMs = performance.now();
    first.stop.abort();
    await untilShared([second], [256]);
    expect(performance.now() - beganAtMs).toBeLessThan(TIMING.ttlMs);
  });

  it("come back where Redis has forgotten them", async () => {
    const [first, second] = [await start(), await start()];
    await untilShared([first, second], [128, 128]);
    await rig.spine.server.client.flushall();
    await until(() => sharesOf([first, second]).join() !== "128,128");
    await untilShared([first, second], [128, 128]);
  });
});

describe("sources on many workers", () => {
  it("run once each, and go on exactly where they stood while workers join, leave and fall silent", async () => {
    const sources = await rig.install(12);
    rig.upstream.mostOpen = 0;
    writeUpTo(sources, 40);
    await using link = await startCuttableLink(rig.server.port);
    const first = await start({ url: `redis://127.0.0.1:${link.port}` });
    await untilOpen(sources);
    const second = await start();
    writeUpTo(sources, 80);
    await untilShared([first, second], [128, 128]);
    await expectWhole(sources, 80);
    // Its runs overlap with those of nobody while shards are handed over in good order.
    expect(rig.upstream.mostOpen).toBe(1);

    link.cut();
    writeUpTo(sources, 120);
    await untilShared([second], [256]);
    await untilShared([first], [0]);
    await expectWhole(sources, 120);
    await untilOpen(sources);
    link.mend();
    // What it had under way when it was cut off, and believes to be its own, is refused by now.
    await stop(first);
    writeUpTo(sources, 160);
    await expectWhole(sources, 160);
  });

  it("lose, double and disorder nothing though two workers both take themselves for the owner", async () => {
    const sources = await rig.install(3);
    await using redis = await openTestRedis(rig.spine.server.url);
    const bus = createSourceBus(redis);
    const beat = async () => ({
      workers: 1,
      share: SHARDS,
      held: Array.from({ length: SHARDS }, (_, i) => i),
    });
    const both = [1, 2].map(() => start({ bus: { ...bus, leases: { ...bus.leases, beat } } }));
    const [one] = await Promise.all(both);
    for (let n = 5; n <= 150; n += 5) {
      writeUpTo(sources, n);
      await untilWritten(rig, sources, n);
    }
    await expectWhole(sources, 150);
    expect(await one?.metrics.registry.metrics()).toMatch(
      /inlet_source_refusals_total\{.*cause="epoch"\} \d/,
    );
  });

  it("go on after everything is restarted, from the database and Redis alone", async () => {
    const sources = await rig.install(3);
    writeUpTo(sources, 20);
    const before = await start();
    await expectWhole(sources, 20);
    await stop(before);
    writeUpTo(sources, 50);
    await start();
    await expectWhole(sources, 50);
  });

  it("end cleanly, and lose nothing, where Redis stops in the middle of everything", async () => {
    const sources = await rig.install(4);
    writeUpTo(sources, 30);
    const worker = await start();
    await expectWhole(sources, 30);
    rig.server.signal("SIGSTOP");
    writeUpTo(sources, 60);
    // By its own clock: nobody tells it.
    await untilShared([worker], [0]);
    rig.server.signal("SIGCONT");
    await expectWhole(sources, 60);
  });

  it("begin and end by what the API says, within two seconds, one run however many subscriptions", async () => {
    const [source] = await rig.install(1, { run: "subscribed" });
    if (!source) throw new Error("nothing was installed");
    const { call } = rig.spine.api;
    const channel = `/apps/${source.appId}/channels/${source.channelId}`;
    writeUpTo([source], 10);
    await start();
    await start();
    rig.upstream.mostOpen = 0;
    const subscribed = [];
    for (const eventUid of ["in:*", "in:tick", "*"]) {
      subscribed.push(await call("POST", `/apps/${source.appId}/events/subscribe`, { eventUid }));
    }
    await until(() => openOf(source) === 1);
    await expectWhole([source], 10);
    await call("POST", `${channel}/pause`, {});
    await until(() => openOf(source) === 0);
    await call("POST", `${channel}/resume`, {});
    await until(() => openOf(source) === 1);
    for (const { body } of subscribed) {
      expect(openOf(source)).toBe(1);
      await call("DELETE", `/apps/${source.appId}/subscriptions/${body.id}`);
    }
    await until(() => openOf(source) === 0);
    expect(rig.upstream.mostOpen).toBe(1);
  });
});

describe("a stream that ends", () => {
  const stateOf = async ({ number }: InstalledSource): Promise<string> => {
    const { db } = rig.spine.api.database;
    const row = db.selectFrom("channels").select("state").where("number", "=", number);
    return (await row.executeTakeFirstOrThrow()).state;
  };

  it("is opened again after a wait that grows, counted over workers", async () => {
    const [source] = await rig.install(1);
    if (!source) throw new Error("nothing was installed");
    rig.upstream.ends.set(source.number, { kind: "failed", code: "refused", message: "no" });
    rig.upstream.reconnect.policy = {
      initialMs: 10,
      maxMs: 60_000,
      factor: 3,
      jitter: 0,
      resetAfterMs: 1_000,
    };
    const first = await start();
    await until(() => connectsOf(source) === 4);
    await stop(first);
    const again = await start();
    await untilShared([again], [256]);
    // 10, 30, 90, then 270 ms: whoever takes it over does not begin at 10 again.
    const { db } = rig.spine.api.database;
    const cursor = await rig.spine.server.client.hgetall(`inlet:{c.${source.number}}:cursor`);
    expect(Number(cursor.f)).toBeGreaterThanOrEqual(4);
    rig.upstream.ends.delete(source.number);
    await db.transaction().execute(async (trx) => {
      await trx
        .insertInto("changes")
        .values({ kind: "source", key: String(source.number) })
        .execute();
    });
    await until(() => openOf(source) === 1);
    rig.upstream.reconnect.policy = { initialMs: 20, maxMs: 100, factor: 2, jitter: 0.5, resetAfterMs: 50 };
  });

  it.each([
    [{ kind: "finished", message: "204" }, "paused"],
    [{ kind: "broken", code: "content_type", message: "text/html" }, "error"],
    [{ kind: "needsReauth", message: "401" }, "needsReauth"],
  ] as const)("for good (%o) stops its channel, until a person resumes it", async (end, state) => {
    const [source] = await rig.install(1);
    if (!source) throw new Error("nothing was installed");
    rig.upstream.ends.set(source.number, end);
    await start();
    await until(async () => (await stateOf(source)) === state);
    rig.upstream.ends.delete(source.number);
    expect(connectsOf(source)).toBeLessThanOrEqual(2);
    await rig.spine.api.call("POST", `/apps/${source.appId}/channels/${source.channelId}/resume`, {});
    await until(() => openOf(source) === 1);
  });
});
