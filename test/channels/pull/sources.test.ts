import { afterEach, describe, expect, it } from "vitest";
import { SHARD_KEYS } from "../../../src/bus/keys.ts";
import { SHARDS } from "../../../src/bus/sources/shard-leases.ts";
import { createSourceBus } from "../../../src/gateway/sources.ts";
import { openTestRedis } from "../../bus/support.ts";
import { startCuttableLink } from "../../support/cuttable-link.ts";
import { itDeep } from "../../support/deep-run.ts";
import { opened } from "../../support/opened.ts";
import { until } from "../../support/until.ts";
import {
  type InstalledSource,
  type SourceRig,
  startSourceRig,
  type TestWorker,
  untilWritten,
  upTo,
} from "./sources-support.ts";

let workers: TestWorker[] = [];

const rig = opened(startSourceRig);
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  workers = [];
  const { db } = rig.spine.api.database;
  await db.updateTable("channels").set({ state: "paused" }).execute();
});

async function start(overrides: Parameters<SourceRig["startWorker"]>[0] = {}): Promise<TestWorker> {
  const worker = await rig.startWorker(overrides);
  workers.push(worker);
  return worker;
}

async function stop(worker: TestWorker): Promise<void> {
  workers = workers.filter((other) => other !== worker);
  await worker[Symbol.asyncDispose]();
}

async function installOne(config: object = {}): Promise<InstalledSource> {
  const [source] = await rig.install(1, config);
  if (!source) throw new Error("no source was installed");
  return source;
}

function writeUpTo(sources: readonly InstalledSource[], n: number): void {
  for (const { number } of sources) rig.upstream.write(number, n);
}

const openOf = ({ number }: InstalledSource): number => rig.upstream.open.get(number) ?? 0;
const connectsOf = ({ number }: InstalledSource): number => rig.upstream.connects.get(number) ?? 0;
const channelPath = ({ appId, channelId }: InstalledSource): string => `/apps/${appId}/channels/${channelId}`;
const sharesOf = (some: readonly TestWorker[]): readonly number[] =>
  some.map(({ sources }) => sources.shards().size).sort((a, b) => a - b);

async function untilShared(some: readonly TestWorker[], shares: readonly number[]): Promise<void> {
  await until(() => sharesOf(some).join() === shares.join());
}

const untilOpen = (sources: readonly InstalledSource[]): Promise<void> =>
  until(() => sources.every((source) => openOf(source) === 1));

/** Expects that no event is lost, duplicated or out of order. Deduplication is off, so a repeated event would be a second entry. */
async function expectWhole(sources: readonly InstalledSource[], n: number): Promise<void> {
  await untilWritten(rig, sources, n);
  for (const source of sources) expect(await rig.onTopic(source)).toEqual(upTo(n));
}

describe("shards (groups of stream sources)", () => {
  it("are divided evenly among the workers when workers join or leave", async () => {
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

  it("are released to another worker as soon as a worker is asked to stop", async () => {
    const first = await start();
    await untilShared([first], [256]);
    const second = await start();
    await untilShared([first, second], [128, 128]);
    // The lease would last for an hour.
    first.stop.abort();
    await untilShared([second], [256]);
  });

  it("are divided among the workers again after Redis was flushed", async () => {
    const [first, second] = [await start(), await start()];
    await untilShared([first, second], [128, 128]);
    const { client } = rig.server;
    await client.flushall();
    await until(async () => (await client.hlen(SHARD_KEYS.owners)) === 256);
    await untilShared([first, second], [128, 128]);
  });
});

describe("stream sources on several workers", () => {
  itDeep("run once each, and lose no event when workers join, leave or lose their connection", async () => {
    const sources = await rig.install(12);
    const { client } = rig.server;
    rig.upstream.mostOpen = 0;
    writeUpTo(sources, 40);
    await using link = await startCuttableLink(rig.server.port);
    const first = await start({ url: `redis://127.0.0.1:${link.port}` });
    await untilOpen(sources);
    const [firstName = ""] = await client.zrange(SHARD_KEYS.workers, "0", "-1");
    const second = await start();
    writeUpTo(sources, 80);
    await untilShared([first, second], [128, 128]);
    await expectWhole(sources, 80);
    // During an orderly hand-over of shards, no two runs of a source overlap.
    expect(rig.upstream.mostOpen).toBe(1);

    link.cut();
    // Ends the lease in Redis while the worker still believes that it holds it. Another worker may now take its shards.
    await client.zadd(SHARD_KEYS.workers, 1, firstName);
    writeUpTo(sources, 120);
    await untilShared([second], [256]);
    await expectWhole(sources, 120);
    link.restore();
    // The writes that were in flight when the connection was cut are rejected by now.
    await stop(first);
    writeUpTo(sources, 160);
    await expectWhole(sources, 160);
  });

  it("lose, duplicate or reorder no event if two workers run the same source at the same time", async () => {
    const sources = await rig.install(3);
    await using redis = await openTestRedis(rig.spine.server.url);
    const bus = createSourceBus(redis);
    const held = Array.from({ length: SHARDS }, (_, i) => i);
    const renew = async () => ({ workers: 1, share: SHARDS, held });
    const both = await Promise.all(
      [1, 2].map(() => start({ bus: { ...bus, leases: { ...bus.leases, renew } } })),
    );
    const isRejected = async (): Promise<boolean> => {
      const texts = await Promise.all(both.map(({ metrics }) => metrics.registry.metrics()));
      return texts.some((text) => /inlet_source_refusals_total\{.*cause="epoch"\} [1-9]/.test(text));
    };
    let n = 0;
    while (n < 50 || !(await isRejected())) {
      n += 5;
      writeUpTo(sources, n);
      await untilWritten(rig, sources, n);
    }
    await expectWhole(sources, n);
  });

  it("continue at their cursors after a restart of all workers", async () => {
    const sources = await rig.install(3);
    writeUpTo(sources, 20);
    const before = await start();
    await expectWhole(sources, 20);
    await stop(before);
    writeUpTo(sources, 50);
    await start();
    await expectWhole(sources, 50);
  });

  it("stop on a worker whose lease expires while Redis is unreachable, and lose no event", async () => {
    const sources = await rig.install(4);
    writeUpTo(sources, 30);
    const worker = await start({ timing: { ttlMs: 2_000 } });
    await expectWhole(sources, 30);
    rig.server.signal("SIGSTOP");
    writeUpTo(sources, 60);
    // The worker notices by its own clock.
    await untilShared([worker], [0]);
    rig.server.signal("SIGCONT");
    await expectWhole(sources, 60);
  });

  it("start with the first subscription and stop after the last one or when the channel is paused", async () => {
    const source = await installOne({ run: "subscribed" });
    const { call } = rig.spine.api;
    writeUpTo([source], 10);
    const both = [await start(), await start()];
    const readChanges = () => Promise.all(both.map((worker) => worker.readChanges()));
    await untilShared(both, [128, 128]);
    rig.upstream.mostOpen = 0;
    const subscribed: string[] = [];
    for (const eventUid of [`${source.uid}:*`, `${source.uid}:tick`, "*"]) {
      subscribed.push((await call.post(`/apps/${source.appId}/events/subscribe`, { eventUid })).id);
    }
    // Only these reads trigger checks. A worker makes them once a second.
    expect(openOf(source)).toBe(0);
    await readChanges();
    await until(() => openOf(source) === 1);
    await expectWhole([source], 10);
    await call.post(`${channelPath(source)}/pause`);
    await readChanges();
    await until(() => openOf(source) === 0);
    await call.post(`${channelPath(source)}/resume`);
    await readChanges();
    await until(() => openOf(source) === 1);
    for (const id of subscribed) {
      expect(openOf(source)).toBe(1);
      await call.delete(`/apps/${source.appId}/subscriptions/${id}`);
      await readChanges();
    }
    await until(() => openOf(source) === 0);
    expect(rig.upstream.mostOpen).toBe(1);
  });
});

describe("a stream source whose stream ends", () => {
  const stateOf = async ({ number }: InstalledSource): Promise<string> => {
    const { db } = rig.spine.api.database;
    const row = db.selectFrom("channels").select("state").where("number", "=", number);
    return (await row.executeTakeFirstOrThrow()).state;
  };

  it("is opened again, and another worker continues its failure count, until a user sets the cursor", async () => {
    const source = await installOne();
    const { reconnect } = rig.upstream;
    const { policy } = reconnect;
    reconnect.policy = { initialMs: 10, maxMs: 60_000, factor: 2, jitter: 0, resetAfterMs: 60_000 };
    const failures = async () =>
      Number(await rig.server.client.hget(`inlet:{c.${source.number}}:cursor`, "f"));
    rig.upstream.ends.set(source.number, { kind: "failed", code: "refused", message: "no" });
    const first = await start();
    await until(async () => (await failures()) >= 4);
    await stop(first);
    const counted = await failures();
    const connects = connectsOf(source);
    const again = await start();
    // The second connection starts only after the end of the first one is stored.
    await until(() => connectsOf(source) >= connects + 2);
    expect(await failures()).toBeGreaterThan(counted);
    rig.upstream.ends.delete(source.number);
    const path = `${channelPath(source)}/source/cursor`;
    await rig.spine.api.call.put(path, { value: 0 });
    await again.readChanges();
    await until(() => openOf(source) === 1);
    expect(await failures()).toBe(0);
    reconnect.policy = policy;
  });

  it.each([
    [{ kind: "broken", code: "cursor", message: "of other settings" }, "error"],
    [{ kind: "needsReauth", message: "401" }, "needsReauth"],
  ] as const)("with %o sets an error state, is retried later by any worker, and becomes active after a success", async (end, state) => {
    const source = await installOne();
    rig.upstream.ends.set(source.number, end);
    const first = await start();
    await until(async () => (await stateOf(source)) === state);
    await stop(first);
    rig.upstream.ends.delete(source.number);
    expect(connectsOf(source)).toBe(1);
    // Removes the retry time, as if 15 minutes had passed.
    await rig.server.client.hdel(`inlet:{c.${source.number}}:cursor`, "r");
    await start();
    await until(() => openOf(source) === 1);
    writeUpTo([source], 1);
    await until(async () => (await stateOf(source)) === "active");
  });

  it.each([
    [{ kind: "finished", message: "204" }, "paused"],
    [{ kind: "broken", code: "content_type", message: "text/html" }, "error"],
    [{ kind: "needsReauth", message: "401" }, "needsReauth"],
  ] as const)("with %o stops its channel until a user resumes the channel", async (end, state) => {
    const source = await installOne();
    rig.upstream.ends.set(source.number, end);
    const worker = await start();
    await until(async () => (await stateOf(source)) === state);
    rig.upstream.ends.delete(source.number);
    expect(connectsOf(source)).toBeLessThanOrEqual(2);
    await rig.spine.api.call.post(`${channelPath(source)}/resume`);
    await worker.readChanges();
    await until(() => openOf(source) === 1);
  });
});
