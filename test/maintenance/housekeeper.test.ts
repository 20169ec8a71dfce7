import { afterEach, describe, expect, it } from "vitest";
import { startOverLimit } from "../../src/bus/limits/over-limit.ts";
import { createAppendedListeners, createPublish } from "../../src/bus/publish/publish.ts";
import { createQuarantineStore, type QuarantineStore } from "../../src/bus/quarantine/quarantine.ts";
import { QUARANTINE_LIMITS } from "../../src/bus/quarantine/quarantine-record.ts";
import { recordAccess } from "../../src/data/accounts/audit.ts";
import { createOrganization } from "../../src/data/accounts/organizations.ts";
import { insertDeadLetter } from "../../src/data/subscriptions/dead-letters.ts";
import type { ChannelHandle } from "../../src/event/ingest.ts";
import { createHookLimits } from "../../src/ingest/hook-limits.ts";
import { createClientAddressOf } from "../../src/lib/addresses/client-address.ts";
import { createLog } from "../../src/log.ts";
import {
  type Housekeeper,
  type HousekeeperDeps,
  type HousekeeperTiming,
  startHousekeeper,
} from "../../src/maintenance/housekeeper.ts";
import { itDeep } from "../support/deep-run.ts";
import { opened } from "../support/opened.ts";
import { startRedis } from "../support/redis.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);

let keepers = new AsyncDisposableStack();
/** Time by which the housekeeper's clock is ahead, so that a topic retired just now looks long retired to the housekeeper. */
let aheadMs = 0;
afterEach(async () => {
  await keepers.disposeAsync();
  keepers = new AsyncDisposableStack();
  aheadMs = 0;
  spine.onDeleted = async () => {};
});

const HOUR_MS = 3_600_000;
const FAST: HousekeeperTiming = {
  tickMs: 50,
  leaseMs: HOUR_MS,
  sweepEveryMs: 50,
  expireEveryMs: 50,
  watchEveryMs: HOUR_MS,
  usageEveryMs: 50,
  retiredForMs: HOUR_MS,
};

interface StartOptions {
  readonly timing?: Partial<HousekeeperTiming>;
  readonly quarantine?: QuarantineStore;
  readonly takesTurns?: boolean;
  readonly appended?: HousekeeperDeps["appended"];
  readonly db?: TestSpine["api"]["database"]["db"];
  readonly on?: TestSpine;
}

function startKeeper({ timing, on = spine, ...options }: StartOptions = {}): Housekeeper {
  const { redis, groups, topics, path, api } = on;
  return keepers.use(
    startHousekeeper({
      redis,
      groups,
      topics,
      quarantine: path.quarantine,
      db: api.database.db,
      deliveryRecords: path.deliveryRecords,
      clock: () => Date.now() + aheadMs,
      log: createLog({ level: "silent" }),
      appended: createAppendedListeners(),
      auditRetentionDays: 90,
      topicBytesPerOrganization: { bytes: 100_000, isDerived: false },
      ...options,
      timing: { ...FAST, ...timing },
    }),
  );
}

const channel = (uid: string, config: object = {}) => ({
  uid,
  kind: "webhook",
  config,
  events: [{ type: "a", idPath: "$.id" }],
});
const subscribe = (appId: string, on = spine): Promise<{ id: string; topics: [string, string, string] }> =>
  on.api.call.post(`/apps/${appId}/events/subscribe`, { eventUid: "*", startAt: "earliest" });
const topicRows = async (appId: string) =>
  (
    await spine.api.database.db
      .selectFrom("topics")
      .select("topic")
      .where("appId", "=", appId)
      .orderBy("topic")
      .execute()
  ).map(({ topic }) => topic);
const removals = (on = spine) => on.api.database.db.selectFrom("removals").select("id").execute();
const holder = async (on = spine) =>
  (await on.api.database.db.selectFrom("leases").select("holder").executeTakeFirst())?.holder;

describe("cleanup in Redis after a deletion", () => {
  it("removes the consumer groups and the topic set of a deleted subscription immediately", async () => {
    const keeper = startKeeper({ takesTurns: false });
    spine.onDeleted = keeper.settleNow;
    const app = await spine.install(channel("main"));
    const { id, topics } = await subscribe(app.id);
    await spine.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
    // Only this call removes the keys, and the response waits for at most two seconds.
    await until(async () => (await removals()).length === 0);
    expect(await spine.groups.list(topics[0])).toEqual([]);
    expect(await spine.server.client.exists(`inlet:sub:${id}`)).toBe(0);
  });

  it("removes the consumer groups and quarantine of a deleted channel, but keeps its events and the consumer groups of other programs", async () => {
    const quarantined = async () => (await spine.server.client.keys("inlet:{q.*r:*")).length;
    const before = await quarantined();
    const app = await spine.install(channel("main"), channel("second"));
    const [main, second] = app.channels;
    await spine.send(main.id, { id: "1" });
    await spine.send(main.id, { noId: true });
    await spine.send(second.id, { noId: true });
    const { id, topics } = await subscribe(app.id);
    await spine.groups.ensure(topics[0], "theirs", "0-0");
    startKeeper();
    await spine.api.call.delete(`/apps/${app.id}/channels/${main.id}`);
    await until(async () => (await removals()).length === 0);
    expect((await spine.groups.list(topics[0])).map(({ name }) => name)).toEqual(["theirs"]);
    expect(await spine.groups.find(topics[1], id)).toBeDefined();
    expect(await spine.server.client.xlen(topics[0])).toBe(1);
    expect(await quarantined()).toBe(before + 1);
    expect(await spine.api.call.get(`/apps/${app.id}/quarantine`)).toHaveLength(1);
  });

  it("removes the events of a channel deleted with purge, even events that another gateway appends late", async () => {
    const app = await spine.install(channel("main"));
    const [{ id: channelId }] = app.channels;
    const { events } = await spine.send(channelId, { id: "1" });
    const [topic = ""] = events.map((event) => event.topic);
    startKeeper();
    await spine.api.call.delete(`/apps/${app.id}/channels/${channelId}?purge=true`);
    await until(async () => (await removals()).length === 0);
    expect(await spine.server.client.exists(topic)).toBe(0);
    await spine.server.client.xadd(topic, `${Date.now() - 60_000}-0`, "data", "late");
    await until(async () => (await spine.server.client.xlen(topic)) === 0);
    expect(await topicRows(app.id)).toEqual([topic]);
    aheadMs = 2 * HOUR_MS;
    await until(async () => (await topicRows(app.id)).length === 0);
    expect(await spine.server.client.exists(topic)).toBe(0);
  });

  it("removes all Redis keys of an app deleted with purge", async () => {
    const keys = async () => new Set(await spine.server.client.keys("*"));
    // Removes delivery records of earlier tests.
    await spine.path.recorder.flush();
    const before = await keys();
    const app = await spine.install(channel("main"));
    await spine.send(app.channels[0].id, { id: "1" });
    await spine.send(app.channels[0].id, { noId: true });
    await subscribe(app.id);
    startKeeper();
    await spine.api.call.delete(`/apps/${app.id}?purge=true`);
    await until(async () => (await removals()).length === 0);
    const left = [...(await keys())].filter((key) => !before.has(key));
    // The marker of deleted delivery records expires within seconds.
    // Rate budgets of API keys and keys of the job queue do not belong to the app.
    expect(left.filter((key) => !/^inlet:(?:rate:|.jobs\..*:meta$|.d\..*:g:)/.test(key))).toEqual([]);
  });

  itDeep(
    "is completed once Redis is available again, if Redis was unavailable during the deletion",
    async () => {
      await using server = await startRedis();
      await using own = await startTestSpine({ server });
      const app = await own.install(channel("main"));
      const { id, topics } = await subscribe(app.id, own);
      const keeper = startKeeper({ on: own });
      await until(async () => (await holder(own)) !== undefined);
      server.signal("SIGSTOP");
      await own.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
      expect(await removals(own)).toHaveLength(1);
      await keeper.settleNow();
      expect(await removals(own)).toHaveLength(1);
      server.signal("SIGCONT");
      await until(async () => (await removals(own)).length === 0);
      expect(await own.groups.list(topics[0])).toEqual([]);
      await keeper[Symbol.asyncDispose]();
    },
  );
});

describe("the housekeeper", () => {
  it("deletes entries older than the maximum age from a topic that receives no new entries", async () => {
    const app = await spine.install(channel("main", { retention: { maxAgeSeconds: 86_400 } }));
    const { topics } = await subscribe(app.id);
    await spine.server.client.xadd(topics[0], `${Date.now() - 86_401_000}-0`, "data", "1");
    await spine.send(app.channels[0].id, { id: "1" });
    startKeeper();
    await until(async () => (await spine.server.client.xlen(topics[0])) === 1);
  });

  it("deletes the topic of a deleted channel with its stream and consumer groups, but only once the topic is empty", async () => {
    const app = await spine.install(channel("main"), channel("second"), channel("third"));
    const { topics } = await subscribe(app.id);
    await spine.send(app.channels[1].id, { id: "1" });
    await spine.api.call.delete(`/apps/${app.id}/channels/${app.channels[0].id}`);
    await spine.api.call.delete(`/apps/${app.id}/channels/${app.channels[1].id}`);
    aheadMs = 2 * HOUR_MS;
    startKeeper();
    await until(async () => (await topicRows(app.id)).length === 2);
    expect(await topicRows(app.id)).toEqual([topics[1], topics[2]]);
    expect(await spine.server.client.exists(topics[0])).toBe(0);
    expect(await spine.server.client.exists(topics[2])).toBe(1);
    await spine.server.client.xtrim(topics[1], "MAXLEN", 0);
    await until(async () => (await topicRows(app.id)).length === 1);
  });

  it("keeps the topic of a deleted channel while another gateway with stale caches may still publish to that topic", async () => {
    const app = await spine.install(channel("main"), channel("second"));
    const { topics } = await subscribe(app.id);
    await spine.api.call.delete(`/apps/${app.id}/channels/${app.channels[0].id}`);
    await spine.server.client.xadd(topics[1], `${Date.now() - 700_000_000}-0`, "data", "1");
    startKeeper();
    // The sweep that trims the second topic has already processed the first one.
    await until(async () => (await spine.server.client.xlen(topics[1])) === 0);
    expect(await topicRows(app.id)).toEqual([...topics].sort());
  });

  it("deletes expired quarantine items of every organization", async () => {
    const app = await spine.install(channel("main"));
    await spine.send(app.channels[0].id, { noId: true });
    const list = () => spine.api.call.get(`/apps/${app.id}/quarantine`);
    expect(await list()).toHaveLength(1);
    const { redis } = spine;
    const publish = createPublish({ redis, newQuarantineId: () => "unused" });
    const limits = { ...QUARANTINE_LIMITS, keepMs: 1 };
    startKeeper({ quarantine: createQuarantineStore({ redis, publish, limits }) });
    await until(async () => (await list()).length === 0);
  });
});

it("dead letters are deleted after 30 days", async () => {
  const app = await spine.install(channel("main"));
  const { id: subscriptionId } = await subscribe(app.id);
  const { db } = spine.api.database;
  const letter = { topic: "events.gone", type: "a", fields: ["data", "1"], attempts: [], reason: "HTTP 500" };
  for (const days of [31, 29]) {
    const of = { subscriptionId, entryId: `${days}-0` };
    await insertDeadLetter(db, { ...of, ...letter }, Date.now() - days * 24 * HOUR_MS);
  }
  const left = async () =>
    (
      await db
        .selectFrom("deadLetters")
        .select("entryId")
        .where("subscriptionId", "=", subscriptionId)
        .orderBy("createdAt")
        .orderBy("id")
        .execute()
    ).map(({ entryId }) => entryId);
  expect(await left()).toHaveLength(2);
  startKeeper();
  await until(async () => (await left()).length < 2);
  expect(await left()).toEqual(["29-0"]);
});

describe("an organization over its topic storage limit", () => {
  it("cannot publish until its readers acknowledge entries, and loses no unread entries", async () => {
    const { api, redis, groups } = spine;
    const tenant = api.as(await api.createForeignKey());
    const events = [{ type: "t", idPath: "$.id" }];
    const made = await tenant.post("/blueprints", {
      title: "Full",
      channels: [{ uid: "main", kind: "webhook", events }],
    });
    const theirs = await tenant.post("/apps/install", { blueprintId: made.id });
    const ours = await spine.install({ uid: "main", kind: "webhook", events });
    const subscribed = await tenant.post(`/apps/${theirs.id}/events/subscribe`, { eventUid: "*" });
    const { topics, group } = subscribed;
    const [topic = ""] = topics;
    const text = "x".repeat(10_000);
    for (const { channels } of [theirs, ours])
      for (let id = 0; id < 30; id++) await spine.send(channels[0].id, { id: String(id), text });

    // Limits already exist here. Otherwise a larger organization would get its current size as limit.
    await api.database.db.updateTable("cluster").set({ limitedSince: new Date() }).execute();
    startKeeper();
    const log = createLog({ level: "silent" });
    await using overLimit = await startOverLimit({ redis, log, everyMs: 20 });
    await until(() => overLimit.has(theirs.organizationId));
    expect(overLimit.has(ours.organizationId)).toBe(false);
    expect(await redis.call("xlen", [topic])).toBe(30);

    const limits = createHookLimits({
      clientAddressOf: createClientAddressOf([]),
      requestsPerSecond: 1_000,
      limitsOf: () => ({ hookRequestsPerSecond: 1_000 }),
      isOverLimit: overLimit.has,
    });
    const verified = (organizationId: string) =>
      limits.checkVerified({ identity: { number: 1, organizationId }, limits: {} } as ChannelHandle);
    expect(verified(theirs.organizationId)).toMatchObject({ code: "rate_limited" });
    expect(verified(ours.organizationId)).toBeUndefined();

    const read = ["group", group, "reader", "COUNT", 25, "STREAMS", topic, ">"];
    const [[, entries]] = (await redis.call("xreadgroup", read)) as [[string, [string, string[]][]]];
    const ids = entries.map(([id]) => id);
    await redis.call("xack", [topic, group, ...ids.slice(0, 24)]);
    await until(() => !overLimit.has(theirs.organizationId));
    // The pending entry, and the entries that were never read.
    expect(await redis.call("xlen", [topic])).toBe(6);
    expect((await groups.find(topic, group))?.pending).toBe(1);
  });
});

it("the housekeeper reports the quarantine size and limit of each organization", async () => {
  const { db } = spine.api.database;
  const { organizationId } = await db
    .transaction()
    .execute((trx) =>
      createOrganization(trx, { organization: "kept", space: "s", account: "a" }, Date.now()),
    );
  await spine.redis.call("hset", [`inlet:{q.${organizationId}}:b`, "t", 4_096]);
  const keeper = startKeeper();
  const limit = 512 * 1024 * 1024;
  await until(() => keeper.quarantineUsage().some(({ organization }) => organization === organizationId));
  expect(keeper.quarantineUsage()).toContainEqual({ organization: organizationId, bytes: 4_096, limit });
  expect(keeper.quarantineUsage().at(-1)).toEqual({ organization: "other", bytes: 0, limit: undefined });
});

it("audit entries and counts of rejected requests are deleted after their retention period", async () => {
  const { db } = spine.api.database;
  const author = { organizationId: "org_old", accountId: null, keyId: null, requestId: null };
  const refusal = { organizationId: "org_old", accountId: "", keyId: "", address: "192.0.2.1", status: 401 };
  for (const days of [91, 89]) {
    const at = new Date(Date.now() - days * 24 * HOUR_MS);
    const entry = { action: "delete", entity: "app", id: `app_${days}` } as const;
    await recordAccess(db, author, [entry], at.getTime());
    await db
      .insertInto("auditRefusals")
      .values({ ...refusal, hour: at, count: days, lastAt: at })
      .execute();
  }
  startKeeper();
  const left = async () => [
    ...(await db
      .selectFrom("audit")
      .select("entityId as of")
      .where("organizationId", "=", "org_old")
      .execute()),
    ...(await db.selectFrom("auditRefusals").select("count as of").execute()),
  ];
  await until(async () => (await left()).length === 2);
  expect((await left()).map((row) => row.of)).toEqual(["app_89", 89]);
});

describe("the housekeeper lease", () => {
  it("is held by one gateway at a time, and passes to another gateway as soon as its holder stops", async () => {
    const first = startKeeper();
    await until(async () => (await holder()) !== undefined);
    const firstHolder = await holder();
    // These check often. The lease of the first one is valid for another hour.
    const others = [1, 2].map(() => startKeeper({ timing: { leaseMs: 300 } }));
    const app = await spine.install(channel("main"));
    const { id } = await subscribe(app.id);
    await spine.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
    await until(async () => (await removals()).length === 0);
    expect(await holder()).toBe(firstHolder);
    await first[Symbol.asyncDispose]();
    await until(async () => ![undefined, firstHolder].includes(await holder()));
    for (const other of others) await other[Symbol.asyncDispose]();
    expect(await holder()).toBeUndefined();
  });

  it("is never acquired by a gateway that is excluded from it, which then only trims the topics to which it appends", async () => {
    const app = await spine.install(channel("main"));
    const { topics } = await subscribe(app.id);
    const { client } = spine.server;
    await Promise.all(
      Array.from({ length: 300 }, (_, i) => client.xadd(topics[0], `${i + 1}-0`, "data", "x".repeat(1_000))),
    );
    const appended = createAppendedListeners();
    startKeeper({ takesTurns: false, appended });
    appended.notify(topics[0], 300_000, 100_000);
    await until(async () => (await client.xlen(topics[0])) < 200);
    await spine.api.call.delete(`/apps/${app.id}`);
    expect(await removals()).not.toEqual([]);
    expect(await holder()).toBeUndefined();
    startKeeper();
    await until(async () => (await removals()).length === 0);
  });

  it("passes from a killed gateway to another gateway only after the lease has expired", async () => {
    const { db } = spine.api.database;
    const inAnHour = new Date(Date.now() + HOUR_MS);
    await db
      .insertInto("leases")
      .values({ name: "housekeeper", holder: "dead", expiresAt: inAnHour })
      .execute();
    let asked = 0;
    const counted = db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        asked++;
        return result;
      },
    });
    const app = await spine.install(channel("main"));
    const { id } = await subscribe(app.id);
    await spine.api.call.delete(`/apps/${app.id}/subscriptions/${id}`);
    const keeper = startKeeper({ timing: { leaseMs: 300 }, db: counted });
    // Without the lease, claiming the lease is its only query.
    await until(() => asked > 2);
    expect(await holder()).toBe("dead");
    expect(keeper.isHolder()).toBe(false);
    expect(await removals()).not.toEqual([]);
    await db
      .updateTable("leases")
      .set({ expiresAt: new Date(0) })
      .execute();
    await until(async () => (await holder()) !== "dead");
    await until(async () => (await removals()).length === 0);
  });
});
