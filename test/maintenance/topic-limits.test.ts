import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import type { RedisBus } from "../../src/bus/connection/redis.ts";
import { OVER_LIMIT_KEY } from "../../src/bus/keys.ts";
import { readTopicLimits } from "../../src/data/accounts/organization-limits.ts";
import { createOrganization } from "../../src/data/accounts/organizations.ts";
import { createSourceBus } from "../../src/gateway/sources.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createTopicLimits, type TopicLimitsDeps } from "../../src/maintenance/topic-limits.ts";
import { openTestRedis } from "../bus/support.ts";
import { opened } from "../support/opened.ts";
import { startRedis } from "../support/redis.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);

const HOUR_MS = 3_600_000;

/** Creates limits with the given bytes per organization. */
const limitsOf = (redis: RedisBus, bytes: number, more: Pick<TopicLimitsDeps, "onTrimmed"> = {}) =>
  createTopicLimits({
    db: spine.api.database.db,
    redis,
    log: createLog({ level: "silent" }),
    deliveryRecords: spine.path.deliveryRecords,
    ttlMs: HOUR_MS,
    mostShown: 1,
    topicBytesPerOrganization: { bytes, isDerived: false },
    ...more,
  });

async function operators() {
  const { db } = spine.api.database;
  const { organizationId } = await db
    .selectFrom("cluster")
    .select("organizationId")
    .executeTakeFirstOrThrow();
  return { db, organizationId: String(organizationId) };
}

async function createTenant(): Promise<string> {
  const { db } = spine.api.database;
  const names = { organization: "tenant", space: "s", account: "a" };
  const made = await db.transaction().execute((trx) => createOrganization(trx, names, Date.now()));
  return made.organizationId;
}

describe("an organization over its topic storage limit", () => {
  it("makes its polling and streaming sources wait, and these fetch the unpublished events again later", async () => {
    const app = await spine.install({
      uid: "main",
      kind: "webhook",
      events: [{ type: "t", idPath: "$.id" }],
    });
    const { number } = await spine.api.database.db
      .selectFrom("channels")
      .select("number")
      .where("appId", "=", app.id)
      .executeTakeFirstOrThrow();
    const channel = await spine.path.findCompiledChannel(number);
    if (!channel) throw new Error("there is no channel");
    const body = Buffer.from('{"id":"1"}');
    const delivery = { method: "POST", headers: {}, query: {}, body, arrivedAtMs: Date.now() };
    const { signal } = new AbortController();
    const { positions } = createSourceBus(spine.redis);
    const source = await positions.takeOver({ number, topics: [] });
    if (source.kind !== "acquired") throw new Error(source.kind);
    const position = { source: number, epoch: source.epoch, version: source.version };
    const [gathered] = spine.path.gatherFetched(channel, [delivery]);
    spine.overLimit.add(app.organizationId);
    await expect(gathered?.write({ signal, position })).rejects.toThrow(UnavailableError);
    await expect(gathered?.write({ signal, position })).rejects.toThrow("reached its topic storage limit");
    spine.overLimit.clear();
    expect(await gathered?.write({ signal, position })).toMatchObject([
      { kind: "accepted", outcome: { published: 1 } },
    ]);
  });

  it("loses its oldest events, even unread ones, if its overLimit setting is trim", async () => {
    const { api, redis } = spine;
    const { db } = api.database;
    const tenant = api.as(await api.createForeignKey());
    const [{ id: organizationId }] = await tenant.get("/organizations");
    await tenant.put(`/organizations/${organizationId}/limits`, { overLimit: "trim" });
    await db.updateTable("cluster").set({ limitedSince: new Date() }).execute();
    let trimmed = 0;
    const limits = limitsOf(redis, 50_000, {
      onTrimmed: (entries) => {
        trimmed += entries;
      },
    });
    const topics = ["inlet:{trim}:a", "inlet:{trim}:b"];
    for (const topic of topics)
      for (let n = 1; n <= 20; n++) await redis.call("xadd", [topic, `${n}-0`, "text", "x".repeat(5_000)]);
    limits.begin();
    for (const topic of topics) {
      limits.expect(topic, organizationId);
      limits.note(topic, Number(await redis.call("memory", ["usage", topic, "SAMPLES", "20"])));
    }
    await limits.settle();
    const left = await Promise.all(topics.map((topic) => redis.call("xlen", [topic])));
    for (const length of left) {
      expect(length).toBeGreaterThan(0);
      expect(length).toBeLessThan(20);
    }
    expect(trimmed).toBe(40 - Number(left[0]) - Number(left[1]));
    const newest = await redis.call("xrevrange", [topics[0] ?? "", "+", "-", "COUNT", "1"]);
    expect(newest).toMatchObject([["20-0", expect.anything()]]);
    expect(String(await redis.call("get", [OVER_LIMIT_KEY]))).not.toContain(organizationId);
  });

  it("is blocked below its own limit while Redis is nearly full, if the organization is one of the largest", async () => {
    const { db, organizationId: ours } = await operators();
    await using small = await startRedis(["--maxmemory", "24mb", "--maxmemory-policy", "noeviction"]);
    await using redis = await openTestRedis(small.url, { checkEveryMs: 20 });
    await db.updateTable("cluster").set({ limitedSince: new Date() }).execute();
    const limits = limitsOf(redis, 24_000_000);
    const [first, second, modest] = [await createTenant(), await createTenant(), await createTenant()];
    const topicOf = (organizationId: string) => `inlet:{share}:${organizationId}`;
    const add = (key: string) => redis.call("xadd", [key, "*", "text", "x".repeat(100_000)]);
    const settle = async (): Promise<unknown> => {
      limits.begin();
      for (const organizationId of [ours, first, second, modest]) {
        const topic = topicOf(organizationId);
        limits.expect(topic, organizationId);
        limits.note(topic, Number(await redis.call("memory", ["usage", topic, "SAMPLES", "20"])));
      }
      await limits.settle();
      return JSON.parse(String(await redis.call("get", [OVER_LIMIT_KEY])));
    };
    for (let n = 0; n < 30; n++) for (const one of [ours, first, second]) await add(topicOf(one));
    for (let n = 0; n < 10; n++) await add(topicOf(modest));
    expect(await settle()).toBe(null);

    // Other data uses most of the memory.
    const usedMemory = async () =>
      Number(/^used_memory:(\d+)/m.exec(String(await redis.call("info", ["memory"])))?.[1]);
    while ((await usedMemory()) < 0.87 * 24 * 1024 * 1024) await add("else");
    await until(() => redis.state().memoryAlarm);
    expect(await settle()).toEqual([first, second]);
    expect(await redis.call("xlen", [topicOf(first)])).toBe(30);
    expect(limits.holdings()?.get(first)).toMatchObject({ limit: 24_000_000, waits: true });
    // The same applies when Redis accepts no writes.
    await redis.call("config", ["set", "maxmemory", "2mb"]);
    await redis.call("del", [OVER_LIMIT_KEY]);
    expect(await settle()).toEqual([first, second]);
    // The block outlasts the alarm, and ends when enough memory is free.
    const used = await usedMemory();
    await redis.call("config", ["set", "maxmemory", Math.round(used / 0.82)]);
    await until(() => !redis.state().memoryAlarm);
    expect(await settle()).toEqual([first, second]);
    await redis.call("config", ["set", "maxmemory", Math.round(used / 0.7)]);
    await until(() => (redis.state().memoryUsedFraction ?? 1) < 0.75);
    expect(await settle()).toBe(null);
    // Small organizations are not blocked, even though other data fills Redis.
    for (const one of [first, second]) await redis.call("xtrim", [topicOf(one), "MAXLEN", 1]);
    await redis.call("xtrim", [topicOf(modest), "MAXLEN", 1]);
    await redis.call("config", ["set", "maxmemory", Math.round((await usedMemory()) / 0.9)]);
    await until(() => redis.state().memoryAlarm);
    expect(await settle()).toBe(null);
  });

  it("gets its current size as its limit when the gateway first introduces limits", async () => {
    const { db } = spine.api.database;
    const organizationId = await createTenant();
    await sql`UPDATE cluster SET limited_since = NULL`.execute(db);
    const read = (bytes: number, isWhole = true, most = { bytes: 1_000_000, isDerived: false }) =>
      readTopicLimits(db, most, { held: new Map([[organizationId, bytes]]), isWhole });
    expect(await read(2_000_000, false)).toBeUndefined();
    const first = await read(5_000_000);
    expect([first?.(organizationId).bytes, first?.("org_other").bytes]).toEqual([5_000_000, 1_000_000]);
    const later = await read(9_000_000);
    expect(later?.(organizationId).bytes).toBe(5_000_000);
    // Redis has less memory now. A derived default blocks no organization, but a configured one does.
    await db.deleteFrom("organizationLimits").where("organizationId", "=", organizationId).execute();
    const set = await read(700_000, true, { bytes: 600_000, isDerived: false });
    expect(set?.(organizationId).bytes).toBe(600_000);
    const derived = await read(700_000, true, { bytes: 600_000, isDerived: true });
    expect(derived?.(organizationId).bytes).toBe(700_000);
  });

  it("gets its current size as its limit only once every topic was measured, and stays blocked while a topic cannot be measured", async () => {
    const { redis, api } = spine;
    const { db } = api.database;
    const organizationId = await createTenant();
    const limits = limitsOf(redis, 1_000);
    const [a, b] = ["inlet:{short}:a", "inlet:{short}:b"];
    /** `undefined` when the topic failed. */
    const sweep = async (bytesOfA: number | undefined, bytesOfB: number | undefined) => {
      limits.begin();
      for (const [topic, bytes] of [[a, bytesOfA] as const, [b, bytesOfB] as const]) {
        limits.expect(topic, organizationId);
        if (bytes !== undefined) limits.note(topic, bytes);
      }
      await limits.settle();
      return String(await redis.call("get", [OVER_LIMIT_KEY])).includes(organizationId);
    };
    const own = async () =>
      (await db.selectFrom("organizationLimits").selectAll().execute()).find(
        (row) => row.organizationId === organizationId,
      )?.topicBytes;
    await sql`UPDATE cluster SET limited_since = NULL`.execute(db);
    expect(await sweep(2_000, undefined)).toBe(false);
    expect(await own()).toBeUndefined();
    expect(await sweep(2_000, 3_000)).toBe(false);
    expect(await own()).toBe(5_000);

    await redis.call("xadd", [b, "1-0", "text", "x".repeat(10_000)]);
    expect(await sweep(2_000, 10_000)).toBe(true);
    expect(limits.usage()).toEqual([
      { organization: organizationId, bytes: 12_000, limit: 5_000 },
      { organization: "other", bytes: 0, limit: undefined },
    ]);
    expect(await sweep(2_000, undefined)).toBe(true);
    expect(await sweep(2_000, 3_000)).toBe(false);
  });
});
