import { expect, it } from "vitest";
import { createSilenceWatch } from "../../../src/channels/pull/silence.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { createTestLog } from "../../support/test-log.ts";

const spine = opened(startTestSpine);

const MINUTE_MS = 60_000;
const { signal } = new AbortController();

it("a channel that receives nothing for longer than its `expectEverySeconds` is reported as silent and logged once", async () => {
  const { db } = spine.api.database;
  const channel = { kind: "webhook", events: [{ type: "tick" }] };
  const app = await spine.install(
    { ...channel, uid: "quiet", config: { expectEverySeconds: 60 } },
    { ...channel, uid: "patient", config: { expectEverySeconds: 3_600 } },
    { ...channel, uid: "careless" },
  );
  let nowMs = Date.now();
  const { log, lines } = createTestLog("warn");
  const watch = createSilenceWatch({ db, topics: spine.topics, log, clock: () => nowMs });
  const check = async () => (await watch.check(signal)).map(({ uid }) => uid);
  expect(await check()).toEqual([]);
  nowMs += 2 * MINUTE_MS;
  expect(await check()).toEqual(["quiet"]);
  expect(await check()).toEqual(["quiet"]);
  expect(lines).toMatchObject([{ event: "channel.silent", channelUid: "quiet", appId: app.id }]);

  await spine.send(app.channels[0].id, { n: 1 });
  nowMs = Date.now() + MINUTE_MS / 2;
  expect(await check()).toEqual([]);
  nowMs = Date.now() + 61 * MINUTE_MS;
  expect((await check()).sort()).toEqual(["patient", "quiet"]);
  expect(watch.silent()).toBe(2);

  await db.updateTable("channels").set({ state: "paused" }).execute();
  expect(await check()).toEqual([]);
  expect(watch.silent()).toBe(0);
});
