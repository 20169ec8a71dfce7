import { describe, expect, it } from "vitest";
import { createInspectGroups } from "../../../src/bus/retention/retention-risk.ts";
import { openedBus } from "../support.ts";

const { server, redis } = openedBus();

const ROOMY = { maxAgeSeconds: 86_400, maxEntries: 1_000_000, maxBytes: 1_000_000_000 };
let made = 0;

/** Creates a topic with entries of 100 characters, one per millisecond, the last one `agoMs` ago. */
async function topicWith(entries: number, agoMs = 0): Promise<string> {
  const topic = `events.o.apps.app.event_received.a.c.t${++made}`;
  const first = Date.now() - agoMs - entries;
  const append = (i: number) => server.client.xadd(topic, `${first + i}-0`, "data", "x".repeat(100));
  await Promise.all(Array.from({ length: entries }, (_, i) => append(i + 1)));
  return topic;
}
const group = (topic: string, name: string): Promise<unknown> =>
  server.client.xgroup("CREATE", topic, name, "0-0", "MKSTREAM");
const read = async (topic: string, name: string, count: number): Promise<string[]> => {
  const reply = (await server.client.xreadgroup(
    ...(["GROUP", name, "r", "COUNT", count, "STREAMS", topic, ">"] as const),
  )) as [string, [string, string[]][]][] | null;
  return (reply?.[0]?.[1] ?? []).map(([id]) => id);
};
const look = createInspectGroups({ redis });
const atRisk = async (topic: string, limits: Partial<typeof ROOMY> = {}): Promise<readonly string[]> => {
  const groups = await look({ topic, ...ROOMY, ...limits });
  return groups.filter(({ isAtRisk }) => isAtRisk).map(({ name }) => name);
};

describe("a consumer group at risk of losing unread entries to trimming", () => {
  it("is reported when its oldest unread entry is older than four fifths of the topic's age limit", async () => {
    const topic = await topicWith(3, 50_000_000);
    await group(topic, "g");
    expect(await atRisk(topic, { maxAgeSeconds: 70_000 })).toEqual([]);
    expect(await atRisk(topic, { maxAgeSeconds: 60_000 })).toEqual(["g"]);
  });

  it("is reported when its unread or pending entries exceed four fifths of the topic's entry limit", async () => {
    const topic = await topicWith(90);
    await group(topic, "behind");
    await group(topic, "stuck");
    await group(topic, "busy");
    await group(topic, "done");
    const [first = ""] = await read(topic, "stuck", 90);
    await read(topic, "busy", 50).then((ids) => server.client.xack(topic, "busy", ...ids));
    await read(topic, "done", 90).then((ids) => server.client.xack(topic, "done", ...ids));
    expect(await atRisk(topic, { maxEntries: 100 })).toEqual(["behind", "stuck"]);
    expect(await atRisk(topic, { maxEntries: 200 })).toEqual([]);
    // All entries except the first were handled. The first one is still trimmed first.
    const others = (await server.client.xpending(topic, "stuck", "-", "+", 100)) as [string][];
    await server.client.xack(topic, "stuck", ...others.map(([id]) => id).filter((id) => id !== first));
    expect(await atRisk(topic, { maxEntries: 100 })).toEqual(["behind", "stuck"]);
    await server.client.xack(topic, "stuck", first);
    expect(await atRisk(topic, { maxEntries: 100 })).toEqual(["behind"]);
  });

  it("is reported when its unread entries exceed four fifths of the topic's byte limit", async () => {
    const topic = await topicWith(100);
    await group(topic, "g");
    const bytes = Number(await server.client.memory("USAGE", topic));
    expect(await atRisk(topic, { maxBytes: bytes * 2 })).toEqual([]);
    expect(await atRisk(topic, { maxBytes: Math.ceil(bytes * 1.1) })).toEqual(["g"]);
  });

  it("is found among hundreds of groups, but is never reported on an empty topic", async () => {
    const topic = await topicWith(9);
    const names = Array.from({ length: 450 }, (_, i) => `g${i}`);
    await Promise.all(names.map((name) => group(topic, name)));
    expect((await atRisk(topic, { maxEntries: 10 })).toSorted()).toEqual(names.toSorted());
    await server.client.xtrim(topic, "MAXLEN", 0);
    expect(await atRisk(topic, { maxEntries: 10 })).toEqual([]);
    expect(await atRisk("events.none")).toEqual([]);
  });
});

describe("the status of a consumer group", () => {
  const standing = async (topic: string) =>
    Object.fromEntries((await look({ topic, ...ROOMY })).map(({ name, ...one }) => [name, one]));

  it("contains the numbers of undelivered entries, pending entries and dead letters, and the ages of the oldest entries", async () => {
    const topic = await topicWith(10, 5_000_000);
    await group(topic, "new");
    await group(topic, "half");
    await group(topic, "done");
    const [oldest = "", ...rest] = await read(topic, "half", 4);
    await server.client.xack(topic, "half", ...rest);
    await read(topic, "done", 10).then((ids) => server.client.xack(topic, "done", ...ids));
    await server.client.xadd(`{${topic}}:dead:done`, "*", "entry", oldest);
    const { half, done, ...others } = await standing(topic);
    expect(others).toEqual({
      new: expect.objectContaining({ lag: 10, pending: 0, deadLetters: 0, isAtRisk: false }),
    });
    expect(half).toMatchObject({ lag: 6, pending: 1, deadLetters: 0 });
    expect(done).toEqual({
      isAtRisk: false,
      lag: 0,
      lagMs: 0,
      unhandledMs: 0,
      pending: 0,
      deadLetters: 1,
    });
    // The oldest pending entry was appended four milliseconds before the first undelivered one.
    expect((half?.unhandledMs ?? 0) - (half?.lagMs ?? 0)).toBe(4);
    expect(others.new?.lagMs).toBe(half?.unhandledMs);
    expect(half?.lagMs).toBeGreaterThanOrEqual(5_000_000);
  });

  it("contains an estimated lag if Redis does not know the lag", async () => {
    const topic = await topicWith(100, 1_000);
    const ids = (await server.client.xrange(topic, "-", "+")).map(([id]) => id);
    await server.client.xgroup("CREATE", topic, "midway", ids[49] ?? "");
    const { midway } = await standing(topic);
    expect(midway?.lag).toBeGreaterThan(45);
    expect(midway?.lag).toBeLessThan(55);
  });
});
