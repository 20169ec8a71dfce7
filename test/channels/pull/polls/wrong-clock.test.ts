import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RedisBus } from "../../../../src/bus/connection/redis.ts";
import { type RedisClock, startRedisClock } from "../../../../src/bus/connection/redis-clock.ts";
import { openJobQueue } from "../../../../src/bus/jobs/job-queue.ts";
import { cursorKey } from "../../../../src/bus/keys.ts";
import { createSourcePositions } from "../../../../src/bus/sources/source-positions.ts";
import type { PollJob } from "../../../../src/channels/pull/polls/poll-target.ts";
import { openTestRedis } from "../../../bus/support.ts";
import { moveWallClock } from "../../../support/moved-clock.ts";
import { createTestLog } from "../../../support/test-log.ts";
import { createTestRedis, type TestRedis } from "../../../support/test-redis.ts";
import { until } from "../../../support/until.ts";
import {
  NEVER_MS,
  often,
  type Poll,
  type PollsWorker,
  silent,
  startPollsWorker,
  wanted,
} from "./polls-support.ts";

const TWO_HOURS_MS = 2 * 3_600_000;

let server: TestRedis;
let redis: RedisBus;
beforeAll(async () => {
  server = await createTestRedis();
  redis = await openTestRedis(server.url);
});
afterAll(async () => {
  for (const each of [redis, server]) await each[Symbol.asyncDispose]();
});

let tests = 0;
const uniqueNames = () => ({ queueName: `clocks-${++tests}`, number: 5_000 + tests });

function countPolls() {
  const seen = { polls: 0 };
  const poll: Poll = async () => {
    seen.polls++;
    return { kind: "done" };
  };
  return { seen, poll };
}

const openClock = (): Promise<RedisClock> => startRedisClock({ redis, log: silent, everyMs: NEVER_MS });

/** Starts a worker that uses the clock of Redis. */
function start(poll: Poll, queueName: string, clock: RedisClock, timing = {}): PollsWorker {
  const { now, aheadMs } = clock;
  return startPollsWorker(redis, poll, { queueName, clock: now, aheadMs, timing });
}

const dueIn = async (queueName: string): Promise<number | undefined> => {
  await using queue = openJobQueue<PollJob>({ redis, name: queueName, log: silent });
  for await (const page of queue.listScheduled())
    for (const { nextAtMs } of page) return nextAtMs - Date.now();
  return undefined;
};

describe("a polling worker with a wrong clock", () => {
  it.each([
    ["ahead", TWO_HOURS_MS],
    ["behind", -TWO_HOURS_MS],
  ])("that is two hours %s polls at the right interval, and so does the worker that takes over", async (_, byMs) => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = countPolls();
    const source = wanted(number, { schedule: often });
    {
      using wrong = moveWallClock();
      wrong.ahead(byMs);
      await using clock = await openClock();
      await using worker = start(poll, queueName, clock);
      worker.engine.sync([source]);
      await until(() => seen.polls >= 4);
    }
    expect(await dueIn(queueName)).toBeLessThan(60_000);
    await using clock = await openClock();
    await using worker = start(poll, queueName, clock);
    worker.engine.sync([source]);
    const before = seen.polls;
    await until(() => seen.polls >= before + 2);
  });

  it("continues polling when the clock is corrected", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = countPolls();
    using wrong = moveWallClock();
    wrong.ahead(TWO_HOURS_MS);
    await using clock = await openClock();
    await using worker = start(poll, queueName, clock);
    worker.engine.sync([wanted(number, { schedule: often })]);
    await until(() => seen.polls >= 2);
    wrong.ahead(-TWO_HOURS_MS);
    const before = seen.polls;
    await until(() => seen.polls >= before + 3);
  });
});

describe("poll times stored by a worker with a wrong clock", () => {
  it("are replaced by the correct time if they are too far in the future", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = countPolls();
    const source = wanted(number, { schedule: { everySeconds: 60, jitter: 0 } });
    {
      using wrong = moveWallClock();
      wrong.ahead(TWO_HOURS_MS);
      // An earlier version without the Redis clock stored this schedule.
      await using worker = startPollsWorker(redis, poll, { queueName });
      worker.engine.sync([source]);
      await until(async () => (await dueIn(queueName)) !== undefined);
    }
    expect(await dueIn(queueName)).toBeGreaterThan(TWO_HOURS_MS - 60_000);
    await redis.call("del", [cursorKey(number)]);
    seen.polls = 0;
    await using clock = await openClock();
    await using worker = start(poll, queueName, clock, { reconcileEveryMs: 100 });
    worker.engine.sync([source]);
    await until(() => seen.polls >= 1);
    await until(async () => ((await dueIn(queueName)) ?? NEVER_MS) <= 61_000);
  });

  it("do not delay a source for longer than the wait after its last failure", async () => {
    const { number } = uniqueNames();
    const positions = createSourcePositions({ redis });
    const ref = { number, topics: [] };
    const taken = await positions.takeOver(ref);
    if (taken.kind !== "acquired") throw new Error(taken.kind);
    await positions.end(number, taken.epoch, { failures: 1, notBeforeMs: 30_000, retryInMs: 40_000 });
    const later = Date.now() + TWO_HOURS_MS;
    await redis.call("hset", [cursorKey(number), "n", later, "r", later]);
    const waiting = await positions.takeOver(ref);
    expect(waiting).toMatchObject({ kind: "backoff" });
    expect("waitMs" in waiting && waiting.waitMs).toBeLessThanOrEqual(40_000);
  });
});

describe("a worker that uses the clock of Redis", () => {
  it("logs one warning if the clock of its machine differs, and keeps the correct time when that clock is adjusted", async () => {
    const { log, lines } = createTestLog("info");
    using wrong = moveWallClock();
    const near = (ms: number): boolean => Math.abs(ms) < 60_000;
    const trueMs = Date.now();
    wrong.ahead(TWO_HOURS_MS);
    await using clock = await startRedisClock({ redis, log, everyMs: 20 });
    expect(near(clock.now() - trueMs)).toBe(true);
    expect(near(clock.differenceMs() - TWO_HOURS_MS)).toBe(true);
    expect(lines).toMatchObject([{ event: "clock.differs", aheadSeconds: 7_200 }]);
    wrong.ahead(-TWO_HOURS_MS);
    expect(near(clock.now() - trueMs)).toBe(true);
    expect(clock.aheadMs()).toBe(0);
    await until(() => lines.length === 2);
    expect(lines[1]).toMatchObject({ event: "clock.agrees" });
  });
});
