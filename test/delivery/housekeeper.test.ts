import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPublish } from "../../src/bus/publish.ts";
import { createQuarantineStore, type QuarantineStore } from "../../src/bus/quarantine.ts";
import { QUARANTINE_LIMITS } from "../../src/bus/quarantine-write.ts";
import {
  type Housekeeper,
  type HousekeeperTiming,
  startHousekeeper,
} from "../../src/delivery/housekeeper.ts";
import { createLog } from "../../src/log.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

let server: RedisServer;
let spine: TestSpine;
let open: AsyncDisposableStack;
beforeEach(async () => {
  open = new AsyncDisposableStack();
  server = await startRedis();
  spine = open.use(await startTestSpine({ server }));
});
afterEach(() => open.disposeAsync());

const FAST: HousekeeperTiming = {
  beatEveryMs: 20,
  leaseMs: 600,
  sweepEveryMs: 20,
  expireEveryMs: 20,
  watchEveryMs: 50,
  retiredForMs: 0,
};

function startKeeper(
  timing: Partial<HousekeeperTiming> = {},
  quarantine?: QuarantineStore,
  takesTurns = true,
): Housekeeper {
  const { redis, groups, topics, path, api } = spine;
  return open.use(
    startHousekeeper({
      ...{ redis, groups, topics },
      quarantine: quarantine ?? path.quarantine,
      db: api.database.db,
      clock: Date.now,
      log: createLog({ level: "silent" }),
      takesTurns,
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
const subscribe = async (appId: string, eventUid = "*") =>
  (await spine.api.call("POST", `/apps/${appId}/events/subscribe`, { eventUid, startAt: "earliest" })).body;
const topicRows = async () =>
  (await spine.api.database.db.selectFrom("topics").select("topic").orderBy("topic").execute()).map(
    ({ topic }) => topic,
  );
const removals = () => spine.api.database.db.selectFrom("removals").select("id").execute();
const holder = async () =>
  (await spine.api.database.db.selectFrom("leases").select("holder").executeTakeFirst())?.holder;

describe("what a deletion leaves on the bus", () => {
  it("of a subscription, groups and topic set, is gone when its deletion is answered", async () => {
    const keeper = startKeeper({ beatEveryMs: 60_000 });
    spine.onDeleted = keeper.settleNow;
    const app = await spine.install(channel("main"));
    const { id, topics } = await subscribe(app.id);
    await spine.api.call("DELETE", `/apps/${app.id}/subscriptions/${id}`);
    expect(await spine.groups.list(topics[0])).toEqual([]);
    expect(await spine.server.client.exists(`inlet:sub:${id}`)).toBe(0);
    expect(await removals()).toEqual([]);
  });

  it("of a channel, groups and quarantine, goes; its events stay, and so do groups of others", async () => {
    const app = await spine.install(channel("main"), channel("second"));
    const [main, second] = app.channels;
    await spine.send(main.id, { id: "1" });
    await spine.send(main.id, { noId: true });
    await spine.send(second.id, { noId: true });
    const { id, topics } = await subscribe(app.id);
    await spine.groups.ensure(topics[0], "theirs", "0-0");
    startKeeper();
    await spine.api.call("DELETE", `/apps/${app.id}/channels/${main.id}`);
    await until(async () => (await removals()).length === 0);
    expect((await spine.groups.list(topics[0])).map(({ name }) => name)).toEqual(["theirs"]);
    expect(await spine.groups.find(topics[1], id)).toBeDefined();
    expect(await spine.server.client.xlen(topics[0])).toBe(1);
    const kept = await spine.server.client.keys("inlet:{q.*r:*");
    expect(kept).toHaveLength(1);
  });

  it("of a channel with purge goes with its events, and with those that another gateway appends late", async () => {
    const app = await spine.install(channel("main"));
    const [{ id: channelId }] = app.channels;
    const { events } = await spine.send(channelId, { id: "1" });
    const [topic = ""] = events.map((event) => event.topic);
    startKeeper();
    await spine.api.call("DELETE", `/apps/${app.id}/channels/${channelId}?purge=true`);
    await until(async () => (await removals()).length === 0);
    await spine.server.client.xadd(topic, `${Date.now() - 2_000}-0`, "data", "late");
    await until(async () => (await topicRows()).length === 0);
    expect(await spine.server.client.exists(topic)).toBe(0);
  });

  it("of an app goes, all of it", async () => {
    const app = await spine.install(channel("main"));
    await spine.send(app.channels[0].id, { id: "1" });
    await spine.send(app.channels[0].id, { noId: true });
    await subscribe(app.id);
    startKeeper();
    await spine.api.call("DELETE", `/apps/${app.id}?purge=true`);
    await until(async () => (await removals()).length === 0);
    const left = await spine.server.client.keys("*");
    // Budgets of API keys and what names a queue of jobs are not the app's.
    expect(left.filter((key) => !/^inlet:(?:rate:|.jobs\..*:meta$)/.test(key))).toEqual([]);
  });

  it("waits for a Redis that is away", async () => {
    const app = await spine.install(channel("main"));
    const { id, topics } = await subscribe(app.id);
    const keeper = startKeeper();
    await until(async () => (await holder()) !== undefined);
    server.signal("SIGSTOP");
    const answered = spine.api.call("DELETE", `/apps/${app.id}/subscriptions/${id}`);
    await until(async () => (await removals()).length === 1);
    expect((await answered).status).toBe(200);
    await keeper.settleNow();
    expect(await removals()).toHaveLength(1);
    server.signal("SIGCONT");
    await until(async () => (await removals()).length === 0);
    expect(await spine.groups.list(topics[0])).toEqual([]);
  });
});

describe("retention", () => {
  it("trims an idle topic by its age", async () => {
    const app = await spine.install(channel("main", { retention: { maxAgeSeconds: 60 } }));
    const { topics } = await subscribe(app.id);
    await spine.server.client.xadd(topics[0], `${Date.now() - 61_000}-0`, "data", "1");
    await spine.send(app.channels[0].id, { id: "1" });
    startKeeper();
    await until(async () => (await spine.server.client.xlen(topics[0])) === 1);
  });

  it("forgets a retired topic, its stream and groups, once it is empty, and no other", async () => {
    const app = await spine.install(channel("main"), channel("second"), channel("third"));
    const { topics } = await subscribe(app.id);
    await spine.send(app.channels[1].id, { id: "1" });
    await spine.api.call("DELETE", `/apps/${app.id}/channels/${app.channels[0].id}`);
    await spine.api.call("DELETE", `/apps/${app.id}/channels/${app.channels[1].id}`);
    startKeeper();
    await until(async () => (await topicRows()).length === 2);
    expect(await topicRows()).toEqual([topics[1], topics[2]]);
    expect(await spine.server.client.exists(topics[0])).toBe(0);
    expect(await spine.server.client.exists(topics[2])).toBe(1);
    await spine.server.client.xtrim(topics[1], "MAXLEN", 0);
    await until(async () => (await topicRows()).length === 1);
  });

  it("keeps a retired topic for as long as a gateway may publish to it unaware", async () => {
    const app = await spine.install(channel("main"), channel("second"));
    const { topics } = await subscribe(app.id);
    await spine.api.call("DELETE", `/apps/${app.id}/channels/${app.channels[0].id}`);
    await spine.server.client.xadd(topics[1], `${Date.now() - 700_000_000}-0`, "data", "1");
    startKeeper({ retiredForMs: 60_000 });
    // The sweep that trims the second topic has been at the first.
    await until(async () => (await spine.server.client.xlen(topics[1])) === 0);
    expect(await topicRows()).toEqual([...topics].sort());
  });

  it("lets go of quarantine that is past its keep, in every organization", async () => {
    const app = await spine.install(channel("main"));
    await spine.send(app.channels[0].id, { noId: true });
    const list = async () => (await spine.api.call("GET", `/apps/${app.id}/quarantine`)).body;
    expect(await list()).toHaveLength(1);
    const { redis } = spine;
    const publish = createPublish({ redis, newQuarantineId: () => "unused" });
    const store = createQuarantineStore({ redis, publish, limits: { ...QUARANTINE_LIMITS, keepMs: 1 } });
    startKeeper({}, store);
    await until(async () => (await list()).length === 0);
  });
});

describe("of several gateways", () => {
  it("one works, and when it stops another does at once", async () => {
    const keepers = [startKeeper(), startKeeper(), startKeeper()];
    await until(async () => (await holder()) !== undefined);
    const first = await holder();
    const app = await spine.install(channel("main"));
    const { id } = await subscribe(app.id);
    await spine.api.call("DELETE", `/apps/${app.id}/subscriptions/${id}`);
    await until(async () => (await removals()).length === 0);
    expect(await holder()).toBe(first);
    const holders = new Set([first]);
    for (const keeper of keepers) {
      await keeper[Symbol.asyncDispose]();
      if (keeper === keepers.at(-1)) break;
      await until(async () => (await holder()) !== undefined);
      holders.add(await holder());
    }
    expect(holders.size).toBeGreaterThan(1);
    expect(await holder()).toBeUndefined();
  });

  it("one that takes no turns trims what it appends, and leaves the rest to the others", async () => {
    const app = await spine.install(channel("main"));
    const { topics } = await subscribe(app.id);
    for (let i = 1; i <= 300; i++)
      await spine.server.client.xadd(topics[0], `${i}-0`, "data", "x".repeat(1_000));
    const idle = startKeeper({}, undefined, false);
    idle.noteAppended(topics[0], 300_000, 100_000);
    await until(async () => (await spine.server.client.xlen(topics[0])) < 200);
    await spine.api.call("DELETE", `/apps/${app.id}`);
    expect(await removals()).not.toEqual([]);
    expect(await holder()).toBeUndefined();
    startKeeper();
    await until(async () => (await removals()).length === 0);
  });

  it("another takes over from one that died, once its lease has run out", async () => {
    const { db } = spine.api.database;
    await db
      .insertInto("leases")
      .values({ name: "housekeeper", holder: "dead", expiresAt: new Date(Date.now() + 300) })
      .execute();
    const startedAt = Date.now();
    startKeeper({ leaseMs: 300 });
    await until(async () => (await holder()) !== "dead");
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(290);
  });
});
