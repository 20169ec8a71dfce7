import { expect, it, vi } from "vitest";
import type { Groups } from "../../src/bus/groups/groups.ts";
import { settleRemovals } from "../../src/data/removals.ts";
import { clearRemoval } from "../../src/delivery/clear-removal.ts";
import { startGroupReconciler } from "../../src/delivery/group-reconciler.ts";
import { undoUncovered } from "../../src/delivery/undo-uncovered.ts";
import { createLog } from "../../src/log.ts";
import { createTestChanges } from "../support/changes.ts";
import { opened } from "../support/opened.ts";
import { startTestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const spine = opened(startTestSpine);
const { signal } = new AbortController();

const channel = { uid: "main", kind: "webhook", events: [{ type: "push" }] };
const install = async () => {
  const { id, channels } = await spine.install(channel);
  const path = `/apps/${id}`;
  const subscribe = () =>
    spine.api.call.post(`${path}/events/subscribe`, { eventUid: "*", startAt: "earliest" });
  return { path, channelPath: `${path}/channels/${channels[0].id}`, subscribe };
};
type Installed = Awaited<ReturnType<typeof install>>;

async function remove(path: string): Promise<void> {
  const { status } = await spine.api.call("DELETE", path);
  expect(status).toBe(200);
  const deps = { ...spine, ...spine.path };
  await settleRemovals(spine.api.database.db, (removal) => clearRemoval(deps, removal), { signal });
}

const standing = () => spine.server.client.keys("events.*");

it.each<[string, (app: Installed) => string]>([
  ["channel with its events", ({ channelPath }) => `${channelPath}?purge=true`],
  ["channel", ({ channelPath }) => channelPath],
  ["app", ({ path }) => path],
])("subscribing leaves no stream behind where a deleted %s is cleared away meanwhile", async (_, pathOf) => {
  const app = await install();
  const { ensure } = spine.groups;
  using _making = vi.spyOn(spine.groups, "ensure").mockImplementationOnce(async (...args) => {
    await remove(pathOf(app));
    return ensure(...args);
  });
  await app.subscribe();
  expect(await standing()).toEqual([]);
});

it("reconciling leaves no stream behind where a deleted channel is cleared away meanwhile", async () => {
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

it("a new channel that takes the topic over keeps the groups on it", async () => {
  const app = await install();
  const { id, topics } = await app.subscribe();
  await spine.api.call("DELETE", app.channelPath);
  await spine.api.call.post(`${app.path}/channels`, channel);
  await undoUncovered({ db: spine.api.database.db, groups: spine.groups }, new Map([[id, topics]]));
  expect(await spine.groups.find(topics[0], id)).toBeDefined();
});
