import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createInspectGroups, type InspectGroups } from "../../src/bus/retention/retention-risk.ts";
import { pageTopics } from "../../src/data/channels/topics.ts";
import { insertDeadLetter } from "../../src/data/subscriptions/dead-letters.ts";
import { createLog } from "../../src/log.ts";
import { startRetentionWatch } from "../../src/maintenance/retention-watch.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

let spine: TestSpine;
let open: AsyncDisposableStack;
let lines: { readonly msg: string; readonly subscription: string }[];
let holder: boolean;
let looks: number;
beforeEach(async () => {
  open = new AsyncDisposableStack();
  spine = open.use(await startTestSpine());
  [lines, holder, looks] = [[], true, 0];
});
afterEach(() => open.disposeAsync());

function startWatch(inspectGroups: InspectGroups = createInspectGroups(spine)) {
  const { db } = spine.api.database;
  return open.use(
    startRetentionWatch({
      db,
      inspectGroups,
      everyMs: 20,
      mostShown: 1,
      log: createLog({ level: "info", destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
      isHolder: () => holder,
      async *pages() {
        yield await pageTopics(db, "", 500);
        looks++;
      },
    }),
  );
}

const retention = { maxEntries: 100 };
const channel = {
  uid: "main",
  kind: "webhook",
  config: { retention },
  events: [{ type: "a", idPath: "$.id" }],
};

/** Creates an app with two subscriptions. Its topic is 90 % full, and only the second subscription is up to date. */
async function fill() {
  const app = await spine.install(channel);
  const subscribe = () => spine.api.call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*" });
  const [behind, done] = [await subscribe(), await subscribe()];
  const [topic] = behind.topics;
  const { client } = spine.server;
  await Promise.all(Array.from({ length: 90 }, () => client.xadd(topic, "*", "data", "1")));
  await client.xreadgroup("GROUP", done.id, "r", "COUNT", 1_000, "NOACK", "STREAMS", topic, ">");
  const stateOf = async ({ id }: { id: string }) =>
    (await spine.api.call.get(`/apps/${app.id}/subscriptions/${id}`)).state;
  return { behind, done, topic, stateOf };
}

describe("a subscription with unread events that retention will soon delete", () => {
  it("is in state failing, logged once, and counted as at risk, until its reader has caught up", async () => {
    const { behind, done, topic, stateOf } = await fill();
    const watch = startWatch();
    await until(async () => (await stateOf(behind)) === "failing");
    await until(() => watch.atRisk() === 1);
    expect(await stateOf(done)).toBe("active");
    const seen = looks;
    await until(() => looks > seen + 3);
    expect(lines).toMatchObject([{ msg: "retention will trim unread events soon", subscription: behind.id }]);
    holder = false;
    expect(watch.atRisk()).toBe(0);
    holder = true;
    const { client } = spine.server;
    await client.xreadgroup("GROUP", behind.id, "r", "COUNT", 1_000, "NOACK", "STREAMS", topic, ">");
    await until(async () => (await stateOf(behind)) === "active");
    await until(() => watch.atRisk() === 0);
    expect(lines).toMatchObject([{}, { msg: "unread events are no longer at risk from retention" }]);
  });

  it("stays in state failing while the check itself fails, and the failed check is logged once", async () => {
    const { behind, stateOf } = await fill();
    let isAway = false;
    const look = createInspectGroups(spine);
    startWatch(async (topic) => {
      if (isAway) throw new Error("away");
      return look(topic);
    });
    await until(async () => (await stateOf(behind)) === "failing");
    isAway = true;
    const seen = looks;
    await until(() =>
      lines.some(({ msg }) => msg === "the check for unread events at risk of being trimmed is failing"),
    );
    isAway = false;
    await until(() =>
      lines.some(({ msg }) => msg === "the check for unread events at risk of being trimmed works again"),
    );
    expect(looks).toBeGreaterThan(seen);
    expect(await stateOf(behind)).toBe("failing");
    expect(lines).toHaveLength(3);
  });
});

it("backlog metrics contain the subscription with the largest backlog, and the sum of all other subscriptions", async () => {
  const { behind, done } = await fill();
  await spine.server.client.xadd(`{${behind.topics[0]}}:dead:${behind.id}`, "*", "entry", "1-0");
  const { db } = spine.api.database;
  const letter = { topic: behind.topics[0], fields: [], attempts: [], type: "a", reason: "HTTP 500" };
  for (const entryId of ["1-0", "2-0"])
    await insertDeadLetter(db, { ...letter, subscriptionId: behind.id, entryId }, Date.now());
  const watch = startWatch();
  await until(() => watch.backlogs().length > 0);
  const [furthest, others, ...rest] = watch.backlogs();
  expect(rest).toEqual([]);
  expect(furthest).toMatchObject({ subscription: behind.id, lag: 90, pending: 0, deadLetters: 3 });
  expect(furthest?.app).toBe(behind.appId);
  expect(furthest?.lagSeconds).toBe(furthest?.unhandledSeconds);
  const caughtUp = { lag: 0, lagSeconds: 0, unhandledSeconds: 0, pending: 0, deadLetters: 0 };
  expect(others).toEqual({ app: "other", subscription: "other", ...caughtUp });
  expect(done.id).not.toBe(furthest?.subscription);
  holder = false;
  expect(watch.backlogs()).toEqual([]);
});
