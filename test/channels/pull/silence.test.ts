import { expect, it } from "vitest";
import { SHARDS, shardOf } from "../../../src/bus/sources/shard-leases.ts";
import { startSilenceWatch } from "../../../src/channels/pull/silence.ts";
import { createLog } from "../../../src/log.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const ALL: ReadonlySet<number> = new Set(Array.from({ length: SHARDS }, (_, shard) => shard));
const MINUTE_MS = 60_000;

it("the worker of a shard counts its channels, of all kinds, that are silent for longer than `expectEverySeconds`", async () => {
  const { db } = spine.api.database;
  const channel = { kind: "webhook", events: [{ type: "tick" }] };
  const app = await spine.install(
    { ...channel, uid: "quiet", config: { expectEverySeconds: 60 } },
    { ...channel, uid: "patient", config: { expectEverySeconds: 3_600 } },
    { ...channel, uid: "careless" },
  );
  let nowMs = Date.now();
  let shards = ALL;
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "warn",
    destination: { write: (line) => void lines.push(JSON.parse(line)) },
  });
  await using watch = startSilenceWatch({
    ...{ db, topics: spine.topics, log, everyMs: 5 },
    clock: () => nowMs,
    shards: () => shards,
  });
  expect(watch.silent()).toBe(0);
  nowMs += 2 * MINUTE_MS;
  await until(() => watch.silent() === 1);
  expect(lines).toMatchObject([{ event: "channel.silent", channelUid: "quiet", appId: app.id }]);

  await spine.send(app.channels[0].id, { n: 1 });
  nowMs = Date.now() + MINUTE_MS / 2;
  await until(() => watch.silent() === 0);
  nowMs = Date.now() + 61 * MINUTE_MS;
  await until(() => watch.silent() === 2);

  const { number } = await db
    .selectFrom("channels")
    .select("number")
    .where("uid", "=", "quiet")
    .executeTakeFirstOrThrow();
  shards = new Set([shardOf(number)]);
  await until(() => watch.silent() === 1);
  await db.updateTable("channels").set({ state: "paused" }).execute();
  await until(() => watch.silent() === 0);
});
