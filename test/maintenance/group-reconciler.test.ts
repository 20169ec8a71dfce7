import { afterEach, beforeEach, expect, it } from "vitest";
import { removeSubscription } from "../../src/bus/groups/subscription-groups.ts";
import { startChangeFeed } from "../../src/data/changes.ts";
import { createLog } from "../../src/log.ts";
import {
  type GroupReconciler,
  type GroupReconcilerDeps,
  startGroupReconciler,
} from "../../src/maintenance/group-reconciler.ts";
import { createTestChanges } from "../support/changes.ts";
import { opened } from "../support/opened.ts";
import { startRedis } from "../support/redis.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);

let open: AsyncDisposableStack;
let lines: { msg: string; subscription?: string; topics?: number }[];
/** A clock ahead of the real time, so that new groups look overdue to the reconciler. */
let aheadMs: number;
beforeEach(() => {
  open = new AsyncDisposableStack();
  lines = [];
  aheadMs = 0;
});
afterEach(async () => {
  await open.disposeAsync();
  await spine.api.database.db.deleteFrom("subscriptions").execute();
});

function startReconciler(
  options: Partial<Pick<GroupReconcilerDeps, "changes" | "groups" | "tickMs" | "sweepEveryMs">> = {},
  on = spine,
): GroupReconciler {
  const log = createLog({
    level: "info",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  const { redis, groups } = on;
  const { db } = on.api.database;
  const clock = () => Date.now() + aheadMs;
  return open.use(
    startGroupReconciler({
      db,
      changes: createTestChanges(),
      redis,
      groups,
      log,
      clock,
      tickMs: 20,
      ...options,
    }),
  );
}

const channel = (uid: string, ...types: string[]) => ({
  uid,
  kind: "webhook",
  events: types.map((type) => ({ type })),
});

async function subscribe(
  appId: string,
  eventUid: string,
  startAt = "now",
  on = spine,
): Promise<{ id: string; topics: string[] }> {
  return on.api.call.post(`/apps/${appId}/events/subscribe`, { eventUid, startAt });
}

/** Returns the subscription's topics that have its consumer group. */
async function groupsOf(id: string, on = spine): Promise<string[]> {
  const found: string[] = [];
  for (const topic of await on.server.client.smembers(`inlet:sub:${id}`)) {
    if (await on.groups.find(topic, id)) found.push(topic);
  }
  return found.sort();
}

const missing = () => lines.filter(({ msg }) => msg.startsWith("a consumer group was missing"));

it("the reconciler restores all consumer groups and topic sets after Redis was flushed, and logs that it did", async () => {
  const app = await spine.install(channel("main", "push", "pull"), channel("second", "x"));
  const all = await subscribe(app.id, "*", "earliest");
  const some = await subscribe(app.id, "main:*");
  startReconciler();
  await until(async () => (await groupsOf(some.id)).length === 2);
  expect(missing()).toEqual([]);
  aheadMs = 60_000;
  await spine.server.client.flushdb();
  await until(async () => (await groupsOf(all.id)).length === 3 && (await groupsOf(some.id)).length === 2);
  const [topic = ""] = some.topics;
  expect((await spine.groups.find(topic, all.id))?.lastDeliveredId).toBe("0-0");
  const row = await spine.api.database.db
    .selectFrom("subscriptions")
    .select("startMs")
    .where("id", "=", some.id)
    .executeTakeFirstOrThrow();
  expect((await spine.groups.find(topic, some.id))?.lastDeliveredId).toBe(
    `${row.startMs - 1}-18446744073709551615`,
  );
  const reported = () => {
    const topics = new Map<string | undefined, number>();
    for (const line of missing()) {
      topics.set(line.subscription, (topics.get(line.subscription) ?? 0) + (line.topics ?? 0));
    }
    return [topics.get(all.id), topics.get(some.id)].join();
  };
  await until(() => reported() === "3,2");
});

it("the reconciler creates the remaining consumer groups if one cannot be created, logs that failure once and retries it later", async () => {
  const app = await spine.install(channel("main", "push"), channel("second", "x"));
  const blocked = await subscribe(app.id, "main:*");
  const other = await subscribe(app.id, "second:*");
  await spine.server.client.flushdb();
  const [topic = ""] = blocked.topics;
  await spine.server.client.set(topic, "not a stream");
  startReconciler({ sweepEveryMs: 20 });
  await until(async () => (await groupsOf(other.id)).length === 1);
  const told = () =>
    lines.filter(({ msg }) => msg === "the consumer groups of a subscription cannot be created");
  expect(told()).toMatchObject([{ subscription: blocked.id }]);
  await spine.server.client.del(topic);
  await until(async () => (await groupsOf(blocked.id)).length === 1);
  expect(told()).toHaveLength(1);
});

it("the reconciler creates a consumer group on the topic of a new event definition as soon as the change feed reports the definition", async () => {
  const app = await spine.install(channel("main", "push"));
  const covering = await subscribe(app.id, "main:*");
  const other = await subscribe(app.id, "main:push");
  const { db } = spine.api.database;
  const changes = open.use(await startChangeFeed({ db, log: createLog({ level: "silent" }) }));
  startReconciler({ changes, tickMs: 60_000 });
  await until(async () => (await groupsOf(covering.id)).length === 1);
  await spine.api.call("PUT", `/apps/${app.id}/channels/${app.channels[0].id}`, {
    events: [{ type: "push" }, { type: "later" }],
  });
  await until(async () => (await groupsOf(covering.id)).length === 2);
  expect(await groupsOf(other.id)).toEqual(other.topics);
  expect(missing()).toEqual([]);
  const { body } = await spine.api.call("GET", `/apps/${app.id}/subscriptions/${covering.id}`);
  expect([...body.topics].sort()).toEqual(await groupsOf(covering.id));
});

it("the reconciler keeps consumer groups on topics of removed event definitions, but removes them from topics of deleted channels", async () => {
  const app = await spine.install(channel("main", "push", "gone"), channel("second", "x"));
  const { id, topics } = await subscribe(app.id, "*");
  const changes = createTestChanges();
  startReconciler({ changes });
  await spine.api.call("PUT", `/apps/${app.id}/channels/${app.channels[0].id}`, {
    events: [{ type: "push" }],
  });
  await spine.api.call("DELETE", `/apps/${app.id}/channels/${app.channels[1].id}`);
  const left = topics.filter((topic) => topic.includes(".main.")).sort();
  changes.reset();
  await until(async () => (await groupsOf(id)).join() === left.join());
});

it("several reconcilers leave existing consumer groups and their positions unchanged", async () => {
  const app = await spine.install(channel("main", "push"));
  const { id, topics } = await subscribe(app.id, "*", "earliest");
  const [topic = ""] = topics;
  await spine.send(app.channels[0].id, { n: 1 });
  await spine.server.client.xreadgroup("GROUP", id, "me", "STREAMS", topic, ">");
  const before = await spine.groups.find(topic, id);
  expect(before).toMatchObject({ pending: 1, consumers: 1 });
  let made = 0;
  const { groups } = spine;
  const counted: typeof groups = {
    ...groups,
    ensure(...args) {
      made++;
      return groups.ensure(...args);
    },
  };
  const reconcilers = [1, 2, 3].map(() => startReconciler({ tickMs: 5, sweepEveryMs: 0, groups: counted }));
  await until(() => made > 20);
  for (const reconciler of reconcilers) await reconciler[Symbol.asyncDispose]();
  expect(await spine.groups.find(topic, id)).toEqual(before);
});

it("the reconciler leaves no keys in Redis if a subscription is deleted while its consumer groups are created", async () => {
  const app = await spine.install(channel("main", ...Array.from({ length: 30 }, (_, i) => `t${i}`)));
  startReconciler({ tickMs: 1, sweepEveryMs: 0 });
  const { db } = spine.api.database;
  for (let i = 0; i < 8; i++) {
    const { id, topics } = await subscribe(app.id, "*");
    await spine.api.call("DELETE", `/apps/${app.id}/subscriptions/${id}`);
    // The deletion removes the keys at once, while the reconciler may still be creating groups.
    await db.deleteFrom("removals").execute();
    await removeSubscription(spine, id);
    await until(async () => {
      const left = await Promise.all(topics.map((topic) => spine.groups.find(topic, id)));
      return (
        left.every((one) => one === undefined) && (await spine.server.client.exists(`inlet:sub:${id}`)) === 0
      );
    });
  }
});

it("the reconciler starts while Redis is unavailable, and restores consumer groups each time Redis returns without data", async () => {
  await using server = await startRedis();
  await using own = await startTestSpine({ server });
  const app = await own.install(channel("main", "push"));
  const { id } = await subscribe(app.id, "*", "now", own);
  await own.server.client.flushdb();
  server.signal("SIGSTOP");
  await using _ = startReconciler({ tickMs: 50 }, own);
  server.signal("SIGCONT");
  await until(async () => (await groupsOf(id, own)).length === 1);
  await server.restart();
  await until(async () => (await groupsOf(id, own)).length === 1);
});
