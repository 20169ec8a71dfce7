import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openJobQueue } from "../../../../src/bus/jobs/job-queue.ts";
import { cursorKey, slotsKey } from "../../../../src/bus/keys.ts";
import { createSlots } from "../../../../src/bus/limits/slots.ts";
import { createSourcePositions } from "../../../../src/bus/sources/source-positions.ts";
import type { PollJob } from "../../../../src/channels/pull/polls/poll-target.ts";
import type { SourceEnd, SourceRun } from "../../../../src/channels/source.ts";
import { UnavailableError } from "../../../../src/lib/errors.ts";
import { createLog } from "../../../../src/log.ts";
import { LONG_WRITE_TIMEOUT, openedBus, openTestRedis } from "../../../bus/support.ts";
import { itDeep } from "../../../support/deep-run.ts";
import { opened } from "../../../support/opened.ts";
import { startRedis } from "../../../support/redis.ts";
import { createTestRedis } from "../../../support/test-redis.ts";
import { until } from "../../../support/until.ts";
import { EVERY_MS, NEVER_MS, often, type Poll, silent, startPollsWorker, wanted } from "./polls-support.ts";

const DONE: SourceEnd = { kind: "done" };

const { server, redis } = openedBus();
const otherRedis = opened(() => openTestRedis(server.url, LONG_WRITE_TIMEOUT));

let tests = 0;
/** Returns names and numbers that are unique to one test. */
const uniqueNames = () => {
  const test = ++tests;
  return { queueName: `polls-${test}`, number: (i = 0) => test * 1_000 + i };
};

/** Records the polls: their times and channels, the maximum concurrency, and the number of aborted polls. */
function record(how: (run: SourceRun, nth: number) => Promise<SourceEnd> = async () => DONE) {
  const polls: { readonly channel: number; readonly atMs: number }[] = [];
  const seen = { polls, now: 0, maxRunning: 0, maxPerChannel: 0, aborts: 0 };
  const running = new Map<number, number>();
  const poll: Poll = async (run) => {
    const channel = run.channel.identity.number;
    polls.push({ channel, atMs: Date.now() });
    run.signal.addEventListener("abort", () => seen.aborts++);
    seen.maxRunning = Math.max(seen.maxRunning, ++seen.now);
    running.set(channel, (running.get(channel) ?? 0) + 1);
    seen.maxPerChannel = Math.max(seen.maxPerChannel, running.get(channel) ?? 0);
    try {
      return await how(run, polls.filter((each) => each.channel === channel).length);
    } finally {
      seen.now--;
      running.set(channel, (running.get(channel) ?? 1) - 1);
    }
  };
  return { seen, poll };
}

const aborted = ({ signal }: SourceRun): Promise<SourceEnd> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(DONE), { once: true }));

async function countOf(
  worker: { metrics: { registry: { metrics(): Promise<string> } } },
  result: string,
): Promise<number> {
  const text = await worker.metrics.registry.metrics();
  return Number(
    new RegExp(`inlet_polls_total\\{kind="polling",result="${result}"\\} (\\d+)`).exec(text)?.[1] ?? 0,
  );
}

/** Removes the start time of the channel's last poll, so that its interval has passed. */
const forgetLastPoll = (number: number): Promise<unknown> => server.client.hdel(cursorKey(number), "b");

const keysOf = (queueName: string): Promise<string[]> => server.client.keys(`inlet:{jobs.${queueName}}*`);

describe.concurrent("a polled source", () => {
  it("is polled as soon as it is added, long before its first scheduled time", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, { queueName });
    worker.engine.sync([wanted(number())]);
    await until(() => seen.polls.length === 1);
  });

  it("is polled once per scheduled time, by only one of several workers", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    await using one = startPollsWorker(redis, poll, { queueName });
    await using other = startPollsWorker(otherRedis, poll, { queueName });
    const sources = [wanted(number(), { schedule: often })];
    const startedAt = Date.now();
    for (const { engine } of [one, other]) engine.sync(sources);
    await until(() => seen.polls.length >= 6);
    // One first poll, or two if both workers start at the same instant, plus one per interval.
    expect((seen.polls[5]?.atMs ?? 0) - startedAt).toBeGreaterThanOrEqual((6 - 3) * EVERY_MS);
    expect(seen.maxPerChannel).toBe(1);
  });

  it("with a cron expression is polled at the times of the expression", async () => {
    const { queueName, number } = uniqueNames();
    await using queue = openJobQueue<PollJob>({ redis, name: queueName, log: silent });
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, { queueName });
    const schedule = { cron: "*/2 * * * * *", timezone: "Europe/Berlin", jitter: 0 };
    worker.engine.sync([wanted(number(), { schedule })]);
    await until(() => seen.polls.length >= 3);
    const times: number[] = [];
    for await (const page of queue.listScheduled()) times.push(...page.map(({ nextAtMs }) => nextAtMs));
    expect(times.map((atMs) => atMs % 2_000)).toEqual([0]);
  });

  it("skips scheduled times while its previous poll is still running", async () => {
    const { queueName, number } = uniqueNames();
    const ended = Promise.withResolvers<SourceEnd>();
    const { seen, poll } = record((_, nth) => (nth === 1 ? ended.promise : Promise.resolve(DONE)));
    await using one = startPollsWorker(redis, poll, { queueName });
    await using other = startPollsWorker(otherRedis, poll, { queueName });
    for (const { engine } of [one, other]) engine.sync([wanted(number(), { schedule: often })]);
    await until(async () => (await countOf(one, "busy")) + (await countOf(other, "busy")) >= 2);
    await until(() => seen.polls.length > 0);
    expect(seen.polls.length).toBe(1);
    ended.resolve(DONE);
    await until(() => seen.polls.length >= 2);
    expect(seen.maxPerChannel).toBe(1);
  });

  it("is polled again without waiting for its schedule while it has more items", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(async (_, nth) =>
      nth < 4 ? { kind: "done", notBeforeMs: Date.now() } : DONE,
    );
    await using worker = startPollsWorker(redis, poll, { queueName });
    worker.engine.sync([wanted(number())]);
    await until(() => seen.polls.length === 4);
    await until(async () => (await countOf(worker, "done")) === 4);
  });

  it("whose slot is in use when a poll is due is polled as soon as the slot is free", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    // Takes the slot of a poll that will request another one.
    const place = { key: `c.${number()}`, limit: 1, canQueue: false };
    const taken = await createSlots({ redis }).take({ name: "other", sinceMs: 0, semaphores: [place] });
    await using worker = startPollsWorker(redis, poll, { queueName });
    worker.engine.sync([wanted(number())]);
    await until(async () => (await countOf(worker, "busy")) >= 1);
    expect(seen.polls.length).toBe(0);
    if (taken.kind === "taken") await taken.slot.release();
    await until(() => seen.polls.length === 1);
  });

  it("is not polled before the end of the wait that the server requested", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(async (_, nth) =>
      nth === 1 ? { kind: "done", notBeforeMs: Date.now() + NEVER_MS } : DONE,
    );
    await using worker = startPollsWorker(redis, poll, { queueName });
    worker.engine.sync([wanted(number(), { schedule: often })]);
    await until(async () => (await countOf(worker, "early")) >= 2);
    expect(seen.polls.length).toBe(1);
    await server.client.hset(cursorKey(number()), "n", 1);
    await until(() => seen.polls.length >= 2);
  });

  it("is polled after a longer wait for each failure in a row", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(async (_, nth) => {
      if (nth === 2) throw new UnavailableError("no room");
      return nth === 1 ? { kind: "failed", code: "http", message: "500" } : DONE;
    });
    await using worker = startPollsWorker(redis, poll, { queueName, random: () => 0 });
    worker.engine.sync([wanted(number(), { schedule: often })]);
    await until(() => seen.polls.length === 3);
    const gaps = seen.polls.slice(1).map(({ atMs }, i) => atMs - (seen.polls[i]?.atMs ?? 0));
    for (const [i, leastMs] of [750, 1_500].entries()) expect(gaps[i]).toBeGreaterThanOrEqual(leastMs - 20);
    expect(await countOf(worker, "failed")).toBe(2);
  });

  it("is counted as failed, and the error is logged, if its poll throws unexpectedly", async () => {
    const { queueName, number } = uniqueNames();
    const lines: string[] = [];
    const log = createLog({
      level: "error",
      destination: { write: (line: string) => void lines.push(line) },
    });
    const { poll } = record(() => {
      throw new TypeError("a mistake");
    });
    await using worker = startPollsWorker(redis, poll, { queueName, log });
    worker.engine.sync([wanted(number())]);
    await until(async () => (await countOf(worker, "failed")) === 1);
    expect(lines.join()).toContain("a mistake");
  });

  it("has its poll aborted at the deadline", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(() => new Promise(() => {}));
    await using worker = startPollsWorker(redis, poll, { queueName, timing: { deadlineMs: 1_000 } });
    worker.engine.sync([wanted(number())]);
    await until(async () => (await countOf(worker, "failed")) === 1);
    expect(seen.polls.length).toBe(1);
  });

  it("is polled at once, without the backoff of earlier failures, after a user changes its channel", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(async (_, nth) =>
      nth === 1 ? { kind: "failed", code: "http", message: "500" } : DONE,
    );
    await using one = startPollsWorker(redis, poll, { queueName });
    await using other = startPollsWorker(otherRedis, poll, { queueName });
    const both = [one, other];
    for (const { engine } of both) engine.sync([wanted(number())]);
    await until(async () => (await countOf(one, "failed")) + (await countOf(other, "failed")) === 1);
    await forgetLastPoll(number());
    for (const { engine } of both) engine.requestPoll(number());
    await until(() => seen.polls.length >= 2);
    await until(async () => !(await keysOf(queueName)).some((key) => key.includes("again")));
    await forgetLastPoll(number());
    const polls = seen.polls.length;
    for (const { engine } of both) engine.sync([wanted(number(), { version: 2 })]);
    await until(() => seen.polls.length > polls);
    expect(seen.maxPerChannel).toBe(1);
  });
});

describe.concurrent("the poll interval of a source", () => {
  /** Records the start time of each poll by the clock of Redis. */
  function recordBeginnings(how: (nth: number) => SourceEnd = () => DONE) {
    const beganAtMs: number[] = [];
    const { poll } = record(async (run, nth) => {
      const [epoch, began] = await server.client.hmget(cursorKey(run.channel.identity.number), "e", "b");
      beganAtMs.push(Number(began ?? epoch));
      return how(nth);
    });
    const gaps = (): readonly number[] => beganAtMs.slice(1).map((atMs, i) => atMs - (beganAtMs[i] ?? 0));
    return { beganAtMs, gaps, poll };
  }

  for (const [suffix, jitter] of [
    ["", 0],
    [", even with random jitter", 0.5],
  ] as const) {
    it(`is the minimum time between the starts of two polls${suffix}`, async () => {
      const { queueName, number } = uniqueNames();
      const { beganAtMs, gaps, poll } = recordBeginnings();
      await using one = startPollsWorker(redis, poll, { queueName });
      await using other = startPollsWorker(otherRedis, poll, { queueName });
      const source = wanted(number(), { schedule: { everySeconds: 1, jitter } });
      for (const { engine } of [one, other]) engine.sync([source]);
      await until(() => beganAtMs.length >= 5);
      expect(Math.min(...gaps())).toBeGreaterThanOrEqual(1_000);
    });
  }

  it("is kept when the channel is changed, removed and added again, or taken over by another worker", async () => {
    const { queueName, number } = uniqueNames();
    const { beganAtMs, gaps, poll } = recordBeginnings();
    const schedule = { everySeconds: 2, jitter: 0 };
    let version = 1;
    const source = () => wanted(number(), { schedule, version: version++ });
    await using one = startPollsWorker(redis, poll, { queueName });
    one.engine.sync([source()]);
    await until(() => beganAtMs.length === 1);
    for (const change of [
      () => one.engine.requestPoll(number()),
      () => one.engine.sync([source()]),
      () => {
        one.engine.sync([]);
        one.engine.sync([source()]);
      },
    ]) {
      const polls = beganAtMs.length;
      change();
      await until(() => beganAtMs.length > polls);
    }
    await one[Symbol.asyncDispose]();
    await using other = startPollsWorker(otherRedis, poll, { queueName });
    const polls = beganAtMs.length;
    other.engine.sync([source()]);
    await until(() => beganAtMs.length > polls);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(2_000);
  });

  it("starts at each source's first poll, so that 40 sources added together are polled at different times", async () => {
    const { queueName, number } = uniqueNames();
    await using queue = openJobQueue<PollJob>({ redis, name: queueName, log: silent });
    const setAtMs = Date.now();
    const { poll } = record();
    await using worker = startPollsWorker(redis, poll, { queueName, clock: () => setAtMs });
    const schedule = { everySeconds: NEVER_MS / 1_000, jitter: 0 };
    worker.engine.sync(Array.from({ length: 40 }, (_, i) => wanted(number(i), { schedule })));
    await until(async () => (await countOf(worker, "done")) === 40);
    const times: number[] = [];
    for await (const page of queue.listScheduled()) times.push(...page.map(({ nextAtMs }) => nextAtMs));
    times.sort((a, b) => a - b);
    const [first = 0] = times;
    // The worker's clock does not advance, so all schedules are set at the same instant.
    expect(times).toEqual(Array.from({ length: 40 }, (_, i) => first + 5 * i));
    expect(first).toBeGreaterThan(setAtMs + NEVER_MS);
  });

  it("is also the minimum time between a failed poll and the next poll", async () => {
    const { queueName, number } = uniqueNames();
    const { beganAtMs, gaps, poll } = recordBeginnings((nth) =>
      nth < 3 ? { kind: "failed", code: "http", message: "500" } : DONE,
    );
    await using worker = startPollsWorker(redis, poll, { queueName, random: () => 0 });
    worker.engine.sync([wanted(number(), { schedule: { everySeconds: 3, jitter: 0 } })]);
    await until(() => beganAtMs.length >= 3);
    expect(Math.min(...gaps())).toBeGreaterThanOrEqual(3_000);
  });

  it("does not delay the poll that follows when a user sets the cursor", async () => {
    const { queueName, number } = uniqueNames();
    const { beganAtMs, poll } = recordBeginnings();
    await using worker = startPollsWorker(redis, poll, { queueName });
    worker.engine.sync([wanted(number())]);
    await until(() => beganAtMs.length === 1);
    await until(async () => (await countOf(worker, "done")) === 1);
    await createSourcePositions({ redis }).set({ number: number(), topics: [] }, undefined);
    worker.engine.requestPoll(number());
    await until(() => beganAtMs.length === 2);
  });
});

describe.concurrent("limits of concurrent polls", () => {
  for (const owner of ["origin", "organization"] as const) {
    it(`apply to each ${owner} across all workers, and every waiting poll runs eventually`, async () => {
      const { queueName, number } = uniqueNames();
      const { seen, poll } = record(async (run) => {
        // The first three polls wait until all three run, which gives a fourth the time to start as well.
        await until(() => seen.maxRunning >= 3 || run.signal.aborted);
        await delay(10);
        return DONE;
      });
      const limits = {
        perOrigin: 100,
        perOrganization: 100,
        [owner === "origin" ? "perOrigin" : "perOrganization"]: 3,
      };
      await using one = startPollsWorker(redis, poll, { queueName, limits });
      await using other = startPollsWorker(otherRedis, poll, { queueName, limits });
      const sources = Array.from({ length: 24 }, (_, i) =>
        wanted(
          number(i),
          owner === "origin" ? { origin: "https://one.example" } : { organizationId: "org_of_this_test" },
        ),
      );
      for (const { engine } of [one, other]) engine.sync(sources);
      await until(() => new Set(seen.polls.map(({ channel }) => channel)).size === sources.length);
      expect(seen.maxRunning).toBe(3);
    });
  }
});

describe.concurrent("poll schedules in Redis", () => {
  it("are removed when their source is removed, and its running poll is aborted at once", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record(aborted);
    const options = { queueName, timing: { graceMs: 0 } };
    await using one = startPollsWorker(redis, poll, options);
    await using other = startPollsWorker(otherRedis, poll, options);
    for (const { engine } of [one, other]) engine.sync([wanted(number(), { schedule: often })]);
    await until(() => seen.now === 1);
    for (const { engine } of [one, other]) engine.sync([]);
    expect(seen.aborts).toBe(1);
    await until(() => seen.now === 0);
    const polls = seen.polls.length;
    await until(async () => !(await keysOf(queueName)).some((key) => /repeat:|again|:repeat$/.test(key)));
    expect(seen.polls.length).toBe(polls);
    await forgetLastPoll(number());
    for (const { engine } of [one, other]) engine.sync([wanted(number())]);
    await until(() => seen.now === 1);
  });

  it("are restored after Redis was flushed, once each even with two workers", async () => {
    await using own = await createTestRedis();
    await using ownRedis = await openTestRedis(own.url);
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    const options = { queueName, timing: { reconcileEveryMs: 200 } };
    await using one = startPollsWorker(ownRedis, poll, options);
    await using other = startPollsWorker(ownRedis, poll, options);
    const sources = Array.from({ length: 20 }, (_, i) => wanted(number(i)));
    for (const { engine } of [one, other]) engine.sync(sources);
    const polled = () => new Set(seen.polls.map(({ channel }) => channel)).size;
    // A poll that ends after the flush would be stored as the last one.
    await until(async () => (await countOf(one, "done")) + (await countOf(other, "done")) >= 20);
    expect(polled()).toBe(20);
    // Reset before the check, because a poll that started during the flush may be the restored one.
    seen.polls.length = 0;
    await own.client.flushdb();
    await until(() => polled() === 20);
    await until(async () => (await own.client.zcard(`inlet:{jobs.${queueName}}:${queueName}:repeat`)) === 20);
  });

  it("are removed if they belong to an unknown source or to earlier settings of a source", async () => {
    const { queueName, number } = uniqueNames();
    await using queue = openJobQueue<PollJob>({ redis, name: queueName, log: silent });
    const plan = { everyMs: 3_600_000, offsetMs: 1, jitterMs: 0 };
    await queue.schedule(`${number()}.old`, plan, { channel: number() });
    await queue.schedule(`${number(1)}.gone`, plan, { channel: number(1) });
    const { poll } = record();
    await using worker = startPollsWorker(redis, poll, { queueName, timing: { reconcileEveryMs: 100 } });
    worker.engine.sync([wanted(number())]);
    await until(async () => {
      const ids = [];
      for await (const page of queue.listScheduled()) ids.push(...page.map(({ id }) => id));
      return ids.length === 1 && !ids.includes(`${number()}.old`);
    });
  });

  it("with invalid settings do not stop the polls of other sources", async () => {
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    await using worker = startPollsWorker(redis, poll, { queueName });
    const broken = wanted(number(), { schedule: { cron: "0 0 30 2 *", timezone: "UTC", jitter: 0 } });
    worker.engine.sync([broken, wanted(number(1))]);
    await until(() => seen.polls.length === 1);
    expect(seen.polls[0]?.channel).toBe(number(1));
  });

  it("are created as soon as Redis is available, even if Redis was down when the worker started", async () => {
    await using own = await startRedis();
    await using ownRedis = await openTestRedis(own.url);
    const { queueName, number } = uniqueNames();
    const { seen, poll } = record();
    own.signal("SIGKILL");
    await using worker = startPollsWorker(ownRedis, poll, { queueName });
    worker.engine.sync([wanted(number(), { schedule: often })]);
    await own.restart();
    await until(() => seen.polls.length >= 2);
  });
});

describe.concurrent("a polling worker", () => {
  it("that stops aborts its polls, and another worker repeats these polls without waiting for the schedule", async () => {
    const { queueName, number } = uniqueNames();
    const stopped = record(aborted);
    const continuing = record();
    const one = startPollsWorker(redis, stopped.poll, { queueName, timing: { graceMs: 100 } });
    one.engine.sync([wanted(number())]);
    await until(() => stopped.seen.now === 1);
    await using other = startPollsWorker(otherRedis, continuing.poll, { queueName });
    other.engine.sync([wanted(number())]);
    await forgetLastPoll(number());
    await one[Symbol.asyncDispose]();
    expect(stopped.seen).toMatchObject({ now: 0, aborts: 1 });
    await until(() => continuing.seen.polls.length === 1);
  });

  itDeep("that is killed has its sources polled by another worker once its slots expire", async () => {
    const { queueName, number } = uniqueNames();
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "polls-child.ts"), server.url, queueName, String(number())],
      { stdio: ["pipe", "pipe", "inherit"] },
    );
    using _ = { [Symbol.dispose]: () => void child.kill("SIGKILL") };
    await once(child.stdout, "data");
    const { seen, poll } = record();
    await using other = startPollsWorker(redis, poll, { queueName });
    other.engine.sync([wanted(number(), { schedule: often })]);
    await until(async () => (await countOf(other, "busy")) > 0);
    child.kill("SIGKILL");
    await once(child, "exit");
    const busy = await countOf(other, "busy");
    await until(async () => (await countOf(other, "busy")) > busy);
    expect(seen.polls.length).toBe(0);
    await server.client.del(slotsKey(`c.${number()}`));
    await until(() => seen.polls.length >= 2);
  });
});
