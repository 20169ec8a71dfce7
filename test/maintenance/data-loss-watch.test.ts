import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRedisMarker } from "../../src/bus/connection/redis-marker.ts";
import { createLog } from "../../src/log.ts";
import { type DataLossWatch, startDataLossWatch } from "../../src/maintenance/data-loss-watch.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const MARKER = "inlet:{marker.0}";

let open: AsyncDisposableStack;
let spine: TestSpine;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  open = new AsyncDisposableStack();
  spine = open.use(await startTestSpine());
  lines = [];
});
afterEach(() => open.disposeAsync());

const log = createLog({
  level: "info",
  destination: { write: (line) => void lines.push(JSON.parse(line)) },
});
const losses = () => lines.filter(({ event }) => event === "redis.data_lost");
const stored = () => spine.api.database.db.selectFrom("cluster").selectAll().executeTakeFirstOrThrow();
const markerId = async () => String(await spine.redis.call("hget", [MARKER, "id"]));

function watch(): DataLossWatch {
  const { db } = spine.api.database;
  const marker = createRedisMarker({ redis: spine.redis });
  return open.use(startDataLossWatch({ db, marker, clock: Date.now, log, everyMs: 20 }));
}

/** Resolves once the watch has checked the marker another time. */
async function checked(): Promise<void> {
  const at = () => spine.redis.call("hget", [MARKER, "at"]);
  const before = await at();
  await until(async () => (await at()) !== before);
}

async function marked(): Promise<string> {
  await until(async () => (await stored()).redisMarker !== null);
  return markerId();
}

describe("the watch for lost data", () => {
  it("marks Redis at the first start and reports nothing while the marker stays, also after a restart", async () => {
    const first = watch();
    const id = await marked();
    await first[Symbol.asyncDispose]();
    watch();
    await checked();
    await checked();
    expect(await markerId()).toBe(id);
    expect(losses()).toEqual([]);
    expect((await stored()).dataLostAt).toBeNull();
  });

  it.each([
    ["was emptied", ["del", [MARKER]]],
    ["was replaced by another server", ["hset", [MARKER, "id", "mark_other"]]],
  ] as const)("reports once that Redis %s, even with several gateways", async (_, [command, args]) => {
    const watches = [watch(), watch(), watch()];
    const id = await marked();
    await checked();
    await spine.redis.call(command, [...args]);
    await until(() => watches.every((one) => one.lostAt()));
    expect(losses()).toMatchObject([{ level: "error" }]);
    const { redisMarker, dataLostAt } = await stored();
    expect([redisMarker === id, await markerId()]).toEqual([false, redisMarker]);
    expect(watches.map((one) => one.lostAt())).toEqual(watches.map(() => dataLostAt));
  });

  it("reports a Redis that was emptied while no gateway ran", async () => {
    const first = watch();
    await marked();
    await first[Symbol.asyncDispose]();
    await spine.redis.call("del", [MARKER]);
    watch();
    await until(() => losses().length > 0);
    expect(losses()).toHaveLength(1);
  });

  it("reports for how long a Redis that came back from an older snapshot has lost its writes", async () => {
    const watches = [watch(), watch()];
    await until(() => watches.every((one) => one.lostAt() === null));
    const now = Number(await spine.redis.call("hget", [MARKER, "at"]));
    await spine.redis.call("hset", [MARKER, "at", now - 90_000]);
    await until(() => watches.every((one) => one.lostAt()));
    expect(losses()).toHaveLength(1);
    expect(losses()[0]?.lostSeconds).toSatisfy((seconds: number) => seconds >= 89);
  });

  it("tolerates a Redis that has lost its last seconds in a failover", async () => {
    watch();
    await marked();
    const now = Number(await spine.redis.call("hget", [MARKER, "at"]));
    await spine.redis.call("hset", [MARKER, "at", now - 5_000]);
    await checked();
    await checked();
    expect(losses()).toEqual([]);
  });
});
