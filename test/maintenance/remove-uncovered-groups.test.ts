import { sql } from "kysely";
import { expect, it, vi } from "vitest";
import type { Groups } from "../../src/bus/groups/groups.ts";
import { settleRemovals } from "../../src/data/removals.ts";
import { createLog } from "../../src/log.ts";
import { clearRemoval } from "../../src/maintenance/clear-removal.ts";
import { startGroupReconciler } from "../../src/maintenance/group-reconciler.ts";
import { removeUncoveredGroups } from "../../src/maintenance/remove-uncovered-groups.ts";
import { createTestChanges } from "../support/changes.ts";
import { givenChannel } from "../support/channels.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);
const { signal } = new AbortController();

const channel = { uid: "main", kind: "webhook", events: [{ type: "push" }] };
const install = async () => {
  const given = await givenChannel(spine, channel);
  const subscribe = () =>
    spine.api.call.post(`${given.appPath}/events/subscribe`, { eventUid: "*", startAt: "earliest" });
  return { id: given.appId, path: given.appPath, channelPath: given.path, subscribe };
};
type Installed = Awaited<ReturnType<typeof install>>;

async function remove(path: string): Promise<void> {
  const { status } = await spine.api.call("DELETE", path);
  expect(status).toBe(200);
  const deps = { ...spine, ...spine.path };
  await settleRemovals(spine.api.database.db, (removal) => clearRemoval(deps, removal), { signal });
}

const standing = () => spine.server.client.keys("events.*");

it.each<[string, (app: Installed) => string, isLeft: number]>([
  ["channel with its events", ({ channelPath }) => `${channelPath}?purge=true`, 1],
  ["channel", ({ channelPath }) => channelPath, 1],
  ["app with its subscriptions", ({ path }) => path, 0],
])("leaves no keys in Redis if a %s is deleted while a subscription is created", async (_, pathOf, isLeft) => {
  const app = await install();
  const { ensure } = spine.groups;
  using _making = vi.spyOn(spine.groups, "ensure").mockImplementationOnce(async (...args) => {
    await remove(pathOf(app));
    return ensure(...args);
  });
  const { id } = await app.subscribe();
  expect(await standing()).toEqual([]);
  // The subscription of a channel outlives the channel.
  expect(await spine.server.client.exists(`inlet:sub:${id}:known`)).toBe(isLeft);
});

it("a rewind leaves no stream in Redis if the channel is purged in the meantime", async () => {
  const app = await install();
  const { id } = await app.subscribe();
  const { reset } = spine.groups;
  using _making = vi.spyOn(spine.groups, "reset").mockImplementationOnce(async (...args) => {
    await remove(`${app.channelPath}?purge=true`);
    return reset(...args);
  });
  await spine.api.call.post(`${app.path}/subscriptions/${id}/rewind`, { startAt: "earliest" });
  expect(await standing()).toEqual([]);
});

it("the reconciler leaves no stream in Redis if a channel is purged while its consumer groups are created", async () => {
  const app = await install();
  const { topics } = await app.subscribe();
  await spine.server.client.del(topics);
  const { redis, groups } = spine;
  let isMade = false;
  const late: Groups = {
    ...groups,
    async ensure(...args) {
      await remove(`${app.channelPath}?purge=true`);
      isMade = await groups.ensure(...args);
      return isMade;
    },
  };
  const log = createLog({ level: "silent" });
  const changes = createTestChanges();
  const { db } = spine.api.database;
  await using _ = startGroupReconciler({ db, changes, redis, groups: late, clock: Date.now, log });
  await until(async () => isMade && (await standing()).length === 0);
});

it("consumer groups on the topic of a deleted channel are kept if a new channel takes over the topic at the same time", async () => {
  const { connection, db } = spine.api.database;
  const app = await install();
  await spine.api.call.post(`${app.path}/channels`, { ...channel, uid: "other" });
  const { id, topics } = await app.subscribe();
  const [topic] = topics.filter((name: string) => name.includes(".main."));
  await spine.api.call("DELETE", app.channelPath);
  const { number } = await db
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", app.id)
    .executeTakeFirstOrThrow();
  const undone = await db.transaction().execute(async (trx) => {
    await trx.updateTable("topics").set({ channelNumber: number }).where("topic", "=", topic).execute();
    const undoing = removeUncoveredGroups({ ...spine, db }, new Map([[id, [topic]]]));
    await until(async () => {
      const { rows } = await sql<{ waiting: boolean }>`
        SELECT 1 FROM pg_stat_activity WHERE datname = ${connection.database} AND wait_event_type = 'Lock'`.execute(
        db,
      );
      return rows.length > 0;
    });
    return { undoing };
  });
  await undone.undoing;
  expect(await spine.groups.find(topic, id)).toBeDefined();
});
