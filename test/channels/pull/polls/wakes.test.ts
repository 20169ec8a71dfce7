import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openJobQueue } from "../../../../src/bus/jobs/job-queue.ts";
import { cursorKey, slotsKey } from "../../../../src/bus/keys.ts";
import { createWakes, type WakeJob } from "../../../../src/bus/sources/wakes.ts";
import type { PollJob } from "../../../../src/channels/pull/polls/poll-target.ts";
import type { SourceEnd } from "../../../../src/channels/source.ts";
import { UnavailableError } from "../../../../src/lib/errors.ts";
import { LONG_WRITE_TIMEOUT, openedBus, openTestRedis } from "../../../bus/support.ts";
import { itDeep } from "../../../support/deep-run.ts";
import { opened } from "../../../support/opened.ts";
import { startRedis } from "../../../support/redis.ts";
import { until } from "../../../support/until.ts";
import { type Poll, type PollsWorker, silent, startPollsWorker, wanted } from "./polls-support.ts";

const DONE: SourceEnd = { kind: "done" };

const { server, redis } = openedBus();
const otherRedis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));

let tests = 0;

/** Opens the wakes of a source that only one test uses. */
function openSource() {
  const number = ++tests;
  const queueName = `wakes-${number}`;
  const appId = `app_${number}`;
  const queue = openJobQueue<WakeJob>({ redis, name: queueName, log: silent });
  const wakes = createWakes({ redis, queue });
  const channel = { appId, uid: "tiny" };
  return {
    number,
    queueName,
    appId,
    source: wanted(number, { appId }),
    wake: () => wakes.store(channel, Date.now()),
    readCount: () => wakes.readCount(channel),
    [Symbol.asyncDispose]: () => queue[Symbol.asyncDispose](),
  };
}

/** Records the polls. A poll ends when its gate is opened; polls without a gate end at once. */
function record(gates: readonly Promise<SourceEnd>[] = []) {
  const seen = { started: 0, ended: 0, running: 0, maxRunning: 0 };
  const poll: Poll = async () => {
    const gate = gates[seen.started++];
    seen.maxRunning = Math.max(seen.maxRunning, ++seen.running);
    const end = gate === undefined ? DONE : await gate;
    seen.running--;
    seen.ended++;
    return end;
  };
  return { seen, poll };
}

async function countOf(worker: PollsWorker, metric: string, result: string): Promise<number> {
  const text = await worker.metrics.registry.metrics();
  const values = text.matchAll(new RegExp(`^${metric}\\{.*result="${result}"\\} (\\d+)`, "gm"));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

async function jobsOf(queueName: string): Promise<string[]> {
  const keys = await server.client.keys(`inlet:{jobs.${queueName}}:${queueName}:wake.*`);
  return keys.filter((key) => !key.endsWith(":lock"));
}

/** Waits until the queue holds no wake. */
const untilNoWake = (queueName: string) => until(async () => (await jobsOf(queueName)).length === 0);

describe.concurrent("a wake", () => {
  it("makes its source be polled at once, although the source was just polled and is not due for days", async () => {
    await using own = openSource();
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, own);
    worker.engine.sync([own.source]);
    await until(() => seen.ended === 1);
    expect(await own.wake()).toBe(true);
    await until(() => seen.ended === 2);
    await untilNoWake(own.queueName);
    expect(await own.wake()).toBe(true);
    await until(() => seen.ended === 3);
  });

  it("during a running poll leads to exactly one further poll, which starts after the running one", async () => {
    await using own = openSource();
    const gate = Promise.withResolvers<SourceEnd>();
    const { seen, poll } = record([gate.promise]);
    await using one = startPollsWorker(redis, poll, own);
    await using other = startPollsWorker(otherRedis, poll, own);
    for (const { engine } of [one, other]) engine.sync([own.source]);
    await until(() => seen.started === 1);
    expect(await own.wake()).toBe(true);
    for (let i = 0; i < 5; i++) expect(await own.wake()).toBe(false);
    await until(
      async () =>
        (await countOf(one, "inlet_polls_total", "busy")) +
          (await countOf(other, "inlet_polls_total", "busy")) >=
        1,
    );
    expect(seen.started).toBe(1);
    gate.resolve(DONE);
    await until(() => seen.ended === 2);
    await untilNoWake(own.queueName);
    expect(seen).toEqual({ started: 2, ended: 2, running: 0, maxRunning: 1 });
  });

  it("that is stored while the poll of another wake runs waits for its own poll", async () => {
    await using own = openSource();
    const gate = Promise.withResolvers<SourceEnd>();
    const { seen, poll } = record([Promise.resolve(DONE), gate.promise]);
    await using worker = startPollsWorker(redis, poll, own);
    worker.engine.sync([own.source]);
    await until(() => seen.ended === 1);
    await own.wake();
    await until(() => seen.started === 2);
    expect(await own.wake()).toBe(true);
    expect(await own.wake()).toBe(false);
    gate.resolve(DONE);
    await until(() => seen.ended === 3);
    await untilNoWake(own.queueName);
    expect(seen.started).toBe(3);
  });

  it("waits with 999 others for at most two polls, and all are counted", async () => {
    await using own = openSource();
    const gate = Promise.withResolvers<SourceEnd>();
    const { seen, poll } = record([Promise.resolve(DONE), gate.promise]);
    await using one = startPollsWorker(redis, poll, own);
    await using other = startPollsWorker(otherRedis, poll, own);
    for (const { engine } of [one, other]) engine.sync([own.source]);
    await until(() => seen.ended === 1);
    const stored = await Promise.all(Array.from({ length: 1_000 }, () => own.wake()));
    expect(stored.filter((isNew) => isNew).length).toBeLessThanOrEqual(2);
    gate.resolve(DONE);
    await untilNoWake(own.queueName);
    expect(seen.started).toBeLessThanOrEqual(3);
    expect(seen.maxRunning).toBe(1);
    expect(await own.readCount()).toMatchObject({ count: 1_000 });
  });

  it("waits for the end of a wait that the server requested, and is kept until then", async () => {
    await using own = openSource();
    const { seen, poll } = record([Promise.resolve({ kind: "done", notBeforeMs: Date.now() + 3_600_000 })]);
    await using worker = startPollsWorker(redis, poll, own);
    worker.engine.sync([own.source]);
    await until(() => seen.ended === 1);
    await until(async () => (await server.client.hexists(cursorKey(own.number), "n")) === 1);
    await own.wake();
    await until(async () => (await countOf(worker, "inlet_polls_total", "early")) === 1);
    expect(await own.wake()).toBe(false);
    expect(seen.started).toBe(1);
    expect(await jobsOf(own.queueName)).toHaveLength(1);
  });

  it("delays the next scheduled poll by one interval", async () => {
    await using own = openSource();
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, own);
    worker.engine.sync([own.source]);
    await until(() => seen.ended === 1);
    const before = Number(await server.client.hget(cursorKey(own.number), "b"));
    await own.wake();
    await until(() => seen.ended === 2);
    expect(Number(await server.client.hget(cursorKey(own.number), "b"))).toBeGreaterThan(before);
  });

  it("starts its poll no sooner than the minimum time after the start of the poll before", async () => {
    await using own = openSource();
    const spacingMs = 1_000;
    const starts: number[] = [];
    const poll: Poll = async () => {
      const [epoch, began] = await server.client.hmget(cursorKey(own.number), "e", "b");
      starts.push(Number(began ?? epoch));
      return DONE;
    };
    await using worker = startPollsWorker(redis, poll, { ...own, timing: { wakeSpacingMs: spacingMs } });
    worker.engine.sync([own.source]);
    for (let polls = 1; polls < 4; polls++) {
      await until(() => starts.length === polls);
      await own.wake();
    }
    await until(() => starts.length === 4);
    const gaps = starts.slice(1).map((atMs, index) => atMs - (starts[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(spacingMs);
  });

  it("is ignored if its source is paused, deleted or in another app", async () => {
    await using own = openSource();
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, own);
    worker.engine.sync([wanted(own.number, { appId: "app_other" })]);
    await until(() => seen.ended === 1);
    await own.wake();
    await until(async () => (await countOf(worker, "inlet_wakes_total", "ignored")) === 1);
    worker.engine.sync([own.source]);
    worker.active = new Set();
    await untilNoWake(own.queueName);
    await own.wake();
    await until(async () => (await countOf(worker, "inlet_wakes_total", "ignored")) === 2);
    await untilNoWake(own.queueName);
    expect(seen.started).toBe(1);
  });

  itDeep(
    "is polled by another worker if the worker that polls the source is killed while the wake waits",
    async () => {
      await using own = openSource();
      const args = [join(import.meta.dirname, "polls-child.ts"), server.url];
      const child = spawn(process.execPath, [...args, own.queueName, String(own.number), own.appId], {
        stdio: ["pipe", "pipe", "inherit"],
      });
      using _ = { [Symbol.dispose]: () => void child.kill("SIGKILL") };
      await once(child.stdout, "data");
      await own.wake();
      child.kill("SIGKILL");
      await once(child, "exit");
      expect(await jobsOf(own.queueName)).toHaveLength(1);
      // Deletes the locks of the dead worker, as if they had expired.
      const locks = await server.client.keys(`inlet:{jobs.${own.queueName}}*:lock`);
      const checks = await server.client.keys(`inlet:{jobs.${own.queueName}}*:stalled-check`);
      await server.client.del(slotsKey(`c.${own.number}`), ...locks, ...checks);
      const { seen, poll } = record();
      await using other = startPollsWorker(redis, poll, own);
      other.engine.sync([own.source]);
      await until(() => seen.ended >= 1);
      await untilNoWake(own.queueName);
    },
  );

  it("runs again if its poll could not start, because Redis did not confirm that it stopped waiting", async () => {
    await using own = openSource();
    const { seen, poll } = record();
    const real = openJobQueue<PollJob>({ redis, name: own.queueName, log: silent });
    await using _ = real;
    let rejections = 0;
    const work: typeof real.work = (handler, options) =>
      real.work((job, signal) => {
        const stopWaiting = async () => {
          if (rejections++ === 0) throw new UnavailableError("this test has no Redis");
          await job.stopWaiting();
        };
        return handler({ ...job, stopWaiting }, signal);
      }, options);
    await using worker = startPollsWorker(redis, poll, { ...own, queue: { ...real, work } });
    worker.engine.sync([own.source]);
    await until(() => seen.ended === 1);
    await own.wake();
    await until(() => rejections === 1);
    expect(await own.wake()).toBe(false);
    // Ends the wait after the failure, as if it had passed.
    await until(async () => (await server.client.hdel(cursorKey(own.number), "r", "rl")) > 0);
    await until(() => seen.ended === 2);
    await untilNoWake(own.queueName);
    expect(rejections).toBe(2);
  });

  it("is not stored while Redis is unreachable, and the caller is told so", async () => {
    await using down = await startRedis();
    await using downRedis = await openTestRedis(down.url);
    await using queue = openJobQueue<WakeJob>({ redis: downRedis, name: "polls", log: silent });
    const wakes = createWakes({ redis: downRedis, queue });
    const channel = { appId: "app_1", uid: "tiny" };
    await wakes.store(channel, Date.now());
    down.signal("SIGKILL");
    await expect(wakes.store(channel, Date.now())).rejects.toThrow("Redis");
  });

  it("is confirmed only once a replica has it, also if it is combined with a waiting wake", async () => {
    const options = ["--appendonly", "yes", "--appendfsync", "always"];
    await using main = await startRedis(options);
    await using replica = await startRedis(["--replicaof", `127.0.0.1 ${main.port}`]);
    await until(async () => (await main.client.info("replication")).includes("state=online"));
    await using mainRedis = await openTestRedis(main.url, { durability: "replica" });
    await using queue = openJobQueue<WakeJob>({ redis: mainRedis, name: "polls", log: silent });
    const wakes = createWakes({ redis: mainRedis, queue });
    const channel = { appId: "app_1", uid: "tiny" };
    expect(await wakes.store(channel, Date.now())).toBe(true);
    expect(await replica.client.keys("inlet:{jobs.polls}:polls:wake.*")).toHaveLength(1);
    replica.signal("SIGSTOP");
    const stored = [channel, { ...channel, uid: "other" }].map((one) => wakes.store(one, Date.now()));
    for (const result of await Promise.allSettled(stored))
      expect(result).toMatchObject({ status: "rejected", reason: { name: "UnavailableError" } });
    replica.signal("SIGCONT");
    await until(() =>
      wakes
        .store(channel, Date.now())
        .catch(() => undefined)
        .then((isNew) => isNew === false),
    );
  });
});
