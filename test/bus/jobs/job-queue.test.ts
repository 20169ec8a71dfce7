import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { RedisEndpoint } from "../../../src/bus/connection/general-connection.ts";
import { type JobQueue, openJobQueue } from "../../../src/bus/jobs/job-queue.ts";
import type { Job, WorkOptions } from "../../../src/bus/jobs/job-worker.ts";
import { parseRedisAddresses } from "../../../src/lib/addresses/redis-address.ts";
import { createLog, type Log } from "../../../src/log.ts";
import { itDeep } from "../../support/deep-run.ts";
import { opened } from "../../support/opened.ts";
import { openClient, type RedisServer, startRedis } from "../../support/redis.ts";
import { createTestLog } from "../../support/test-log.ts";
import { until } from "../../support/until.ts";

interface Data {
  readonly n: number;
}

const endpointOf = (url: string): RedisEndpoint => ({ isCluster: false, seeds: parseRedisAddresses(url) });
const everyHour = { everyMs: 3_600_000, offsetMs: 1, jitterMs: 0 };

const server = opened(startRedis);
afterEach(() => {
  vi.useRealTimers();
});

let queues = 0;
const { log } = createTestLog("warn");

/** Opens a queue with a unique name. */
const open = (url = server.url, name = `test-${queues++}`): JobQueue<Data> =>
  openJobQueue<Data>({ redis: { endpoint: endpointOf(url) }, name, log });

/** Runs a worker that records its jobs. */
function collect(queue: JobQueue<Data>, options: Partial<WorkOptions> = {}) {
  const jobs: Job<Data>[] = [];
  const worker = queue.work(
    async (job) => {
      jobs.push(job);
      return undefined;
    },
    { concurrency: 4, ...options },
  );
  return { jobs, [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose]() };
}

const scheduled = async (queue: JobQueue<Data>) => {
  const all = [];
  for await (const page of queue.listScheduled()) all.push(...page);
  return all;
};

describe("a schedule of the job queue", () => {
  it("creates a job at each of its times until it is unscheduled", async () => {
    await using queue = open();
    await using worked = collect(queue);
    await queue.schedule("a", { everyMs: 200, offsetMs: 50, jitterMs: 0 }, { n: 7 });
    await until(() => worked.jobs.length >= 4);
    const { jobs } = worked;
    expect(
      jobs.every(({ data, scheduleId, starts }) => data.n === 7 && scheduleId === "a" && starts === 1),
    ).toBe(true);
    expect(jobs.map(({ dueAtMs }) => dueAtMs % 200)).toEqual(jobs.map(() => 50));
    expect(new Set(jobs.map(({ dueAtMs }) => dueAtMs)).size).toBe(jobs.length);
    await queue.unschedule("a");
    await until(async () => (await server.client.keys("*{jobs.*")).every((key) => !key.includes("repeat:a")));
    expect(await scheduled(queue)).toEqual([]);
  });

  it("skips all scheduled times before the requested start time", async () => {
    await using queue = open();
    const tomorrowMs = Math.ceil(Date.now() / 3_600_000 + 24) * 3_600_000 + 1;
    await queue.schedule("later", everyHour, { n: 1 }, tomorrowMs);
    expect(await scheduled(queue)).toEqual([{ id: "later", nextAtMs: tomorrowMs + 3_600_000 }]);
  });

  it("keeps its next time when the same schedule is set again", async () => {
    await using queue = open();
    // The next time is half an hour ahead, so it does not pass during the test.
    const plan = { ...everyHour, offsetMs: (Date.now() + 1_800_000) % 3_600_000 };
    const ids = Array.from({ length: 600 }, (_, i) => `s${i}`);
    await Promise.all(ids.map((id) => queue.schedule(id, plan, { n: 1 })));
    const before = new Map((await scheduled(queue)).map(({ id, nextAtMs }) => [id, nextAtMs]));
    expect([...before.keys()].sort()).toEqual(ids.toSorted());
    await Promise.all([queue, queue].map((each) => each.schedule("s5", plan, { n: 1 })));
    expect(new Map((await scheduled(queue)).map(({ id, nextAtMs }) => [id, nextAtMs]))).toEqual(before);
    expect(await queue.isScheduled("s5")).toBe(true);
    expect(await queue.isScheduled("other")).toBe(false);
  });
});

describe("a job in the job queue", () => {
  it("that is added several times with one id runs once, at the earliest requested time", async () => {
    await using queue = open();
    await queue.add({ id: "one", data: { n: 1 }, delayMs: 3_600_000 });
    await queue.add({ id: "one", data: { n: 2 }, delayMs: 7_200_000 });
    await using worked = collect(queue);
    await queue.add({ id: "other", data: { n: 3 } });
    await until(() => worked.jobs.length === 1);
    await queue.add({ id: "one", data: { n: 4 }, delayMs: 10 });
    await until(() => worked.jobs.length === 2);
    expect(worked.jobs.map(({ id, data }) => [id, data.n])).toEqual([
      ["other", 3],
      ["one", 1],
    ]);
  });

  it("cannot be added again while it runs, and runs before the waiting jobs if it is urgent", async () => {
    await using queue = open();
    const started: string[] = [];
    const ended = Promise.withResolvers<undefined>();
    await using _ = queue.work(
      async ({ id }) => {
        started.push(id);
        return ended.promise;
      },
      { concurrency: 1 },
    );
    expect(await queue.add({ id: "a", data: { n: 1 } })).toBe(true);
    await until(() => started.length === 1);
    expect(await queue.add({ id: "a", data: { n: 1 } })).toBe(false);
    for (const id of ["b", "c"]) expect(await queue.add({ id, data: { n: 1 } })).toBe(true);
    await queue.add({ id: "d", data: { n: 1 }, delayMs: 3_600_000 });
    await queue.add({ id: "d", data: { n: 1 }, isUrgent: true });
    ended.resolve(undefined);
    await until(() => started.length === 4);
    expect(started).toEqual(["a", "d", "b", "c"]);
  });

  it("runs again after its handler postponed it, and leaves no Redis keys when it is done", async () => {
    const name = `test-${queues++}`;
    await using queue = open(server.url, name);
    const starts: number[] = [];
    await using _ = queue.work(
      async (job) => {
        starts.push(job.starts);
        return job.starts < 3 ? { postponeMs: 20 } : undefined;
      },
      { concurrency: 1 },
    );
    await queue.add({ id: "a", data: { n: 1 } });
    await until(() => starts.length === 3);
    await queue.add({ id: "b", data: { n: 1 }, delayMs: 3_600_000 });
    await queue.remove("b");
    await until(
      async () => !(await server.client.keys(`inlet:{jobs.${name}}*`)).some((key) => /:[ab]$/.test(key)),
    );
    expect(starts).toEqual([1, 2, 3]);
  });
});

describe("a job that waits with a name", () => {
  it("is the only waiting one until its handler runs, and another one can then wait", async () => {
    await using queue = open();
    const gates = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const started: number[] = [];
    expect(await queue.addWaiting("name", { n: 1 })).toBe(true);
    expect(await queue.addWaiting("name", { n: 2 })).toBe(false);
    expect(await queue.addWaiting("other", { n: 3 })).toBe(true);
    await using _ = queue.work(
      async (job) => {
        if (job.data.n === 3) return undefined;
        await gates[0]?.promise;
        await job.stopWaiting();
        started.push(job.data.n);
        return gates[1]?.promise;
      },
      { concurrency: 4 },
    );
    expect(await queue.addWaiting("name", { n: 4 })).toBe(false);
    gates[0]?.resolve(undefined);
    await until(() => started.length === 1);
    expect(await queue.addWaiting("name", { n: 5 })).toBe(true);
    await until(() => started.length === 2);
    gates[1]?.resolve(undefined);
    await until(() => queue.addWaiting("name", { n: 6 }));
    await until(() => started.length === 3);
    expect(started).toEqual([1, 5, 6]);
  });

  it("is due at once after it was brought forward, and cannot be brought forward if there is none", async () => {
    await using queue = open();
    const starts: number[] = [];
    await using _ = queue.work(
      async (job) => {
        starts.push(job.starts);
        return job.starts === 1 ? { postponeMs: 3_600_000 } : undefined;
      },
      { concurrency: 1 },
    );
    await queue.addWaiting("name", { n: 1 });
    await until(() => starts.length === 1);
    await until(() => queue.bringForward("name"));
    await until(() => starts.length === 2);
    await until(async () => !(await queue.bringForward("name")));
    expect(await queue.bringForward("none")).toBe(false);
  });

  it("does not block later jobs with the name after its data was lost", async () => {
    const name = `test-${queues++}`;
    await using queue = open(server.url, name);
    await queue.addWaiting("name", { n: 1 });
    await server.client.del(...(await server.client.keys(`inlet:{jobs.${name}}:${name}:name.*`)));
    expect(await queue.addWaiting("name", { n: 2 })).toBe(true);
  });
});

describe("a worker of the job queue", () => {
  it("waits for running jobs when it is stopped, and takes no new jobs", async () => {
    await using queue = open();
    const seen: string[] = [];
    const gate = Promise.withResolvers<void>();
    const worker = queue.work(
      async (job, { signal }) => {
        seen.push(job.id);
        await gate.promise;
        seen.push(`${job.id} ended, ${signal.aborted ? "aborted" : "not aborted"}`);
        return undefined;
      },
      { concurrency: 1, graceMs: 3_600_000 },
    );
    await queue.add({ id: "a", data: { n: 1 } });
    await queue.add({ id: "b", data: { n: 1 } });
    await until(() => seen.length === 1);
    const stopped = worker[Symbol.asyncDispose]();
    gate.resolve();
    await stopped;
    expect(seen).toEqual(["a", "a ended, not aborted"]);
    await using worked = collect(queue);
    await until(() => worked.jobs.length === 1);
    expect(worked.jobs[0]?.id).toBe("b");
  });

  it("aborts running jobs that do not end within the grace period when it is stopped", async () => {
    await using queue = open();
    const begun = Promise.withResolvers<void>();
    const ended: string[] = [];
    const worker = queue.work(
      async ({ id }, { signal }) => {
        begun.resolve();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        ended.push(id);
        return undefined;
      },
      { concurrency: 1, graceMs: 1 },
    );
    await queue.add({ id: "a", data: { n: 1 } });
    await begun.promise;
    await worker[Symbol.asyncDispose]();
    expect(ended).toEqual(["a"]);
  });

  itDeep("that is killed leaves its jobs and schedules to other workers", async () => {
    const name = `test-${queues++}`;
    const child = spawn(process.execPath, [join(import.meta.dirname, "job-child.ts"), server.url, name], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    using _ = { [Symbol.dispose]: () => void child.kill("SIGKILL") };
    await using queue = open(server.url, name);
    await queue.add({ id: "added", data: { n: 1 } });
    await queue.schedule("planned", { everyMs: 500, offsetMs: 1, jitterMs: 0 }, { n: 2 });
    let begun = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      begun += text;
    });
    await until(() => begun.includes("added") && begun.includes("planned"));
    child.kill("SIGKILL");
    await once(child, "exit");
    // Deletes the locks, as if they had expired an hour later.
    const locks = await server.client.keys(`inlet:{jobs.${name}}*:lock`);
    const stalledChecks = await server.client.keys(`inlet:{jobs.${name}}*:stalled-check`);
    expect(locks.length).toBeGreaterThanOrEqual(2);
    await server.client.del(...locks, ...stalledChecks);
    await using worked = collect(queue, { lockMs: 500 });
    const added = () => worked.jobs.find(({ id }) => id === "added");
    await until(() => added() !== undefined && worked.jobs.filter(({ data }) => data.n === 2).length > 2);
    expect(added()?.starts).toBe(2);
  });

  it("starts its work once Redis becomes reachable, and continues after Redis restarts without data", async () => {
    await using own = await startRedis();
    own.signal("SIGKILL");
    await using queue = open(own.url);
    await using worked = collect(queue);
    await expect(queue.add({ data: { n: 1 } })).rejects.toThrow("Redis");
    for (let n = 2; n < 4; n++) {
      await own.restart();
      await until(async () =>
        queue.add({ id: `n${n}`, data: { n } }).then(
          () => true,
          () => false,
        ),
      );
      await until(() => worked.jobs.some(({ data }) => data.n === n));
    }
  });

  it("opens the connections of its worker only when another gateway adds the first job", async () => {
    await using own = await startRedis();
    await using idle = open(own.url, "shared");
    await using worked = collect(idle);
    await until(
      async () => Number((await own.client.info("commandstats")).match(/exists:calls=(\d+)/)?.[1]) > 1,
    );
    const clients = (await connectionsOf(own)).length;
    await using other = open(own.url, "shared");
    await other.add({ data: { n: 1 } });
    await until(() => worked.jobs.length === 1);
    // The connection of `other`, and at least that of the worker.
    expect((await connectionsOf(own)).length).toBeGreaterThanOrEqual(clients + 2);
  });

  it("logs one warning while Redis is down, and then runs the first job of another gateway", async () => {
    await using own = await startRedis();
    own.signal("SIGKILL");
    const { lines, log: ownLog } = createTestLog("debug");
    const openHere = (log: Log) =>
      openJobQueue<Data>({ redis: { endpoint: endpointOf(own.url) }, name: "down", log });
    await using idle = openHere(ownLog);
    await using worked = collect(idle);
    const warnings = () => lines.filter(({ event }) => event === "jobs.failing");
    await until(() => warnings().length > 0);
    await own.restart();
    await using other = openHere(log);
    await until(() =>
      other.add({ id: "first", data: { n: 1 } }).then(
        () => true,
        () => false,
      ),
    );
    await until(() => worked.jobs.length === 1);
    expect(warnings()).toHaveLength(1);
  });

  it("can be stopped before its first job", async () => {
    await using queue = open();
    const worked = collect(queue);
    await worked[Symbol.asyncDispose]();
    await queue.add({ data: { n: 1 } });
    await using again = collect(queue);
    await until(() => again.jobs.length === 1);
    expect(worked.jobs).toEqual([]);
  });

  it("can be stopped while Redis is unreachable, and leaves no connection open", async () => {
    await using own = await startRedis();
    const before = (await connectionsOf(own)).length;
    const [one, other] = [open(own.url), open(own.url)];
    const stopped = collect(one);
    const begun = Promise.withResolvers<void>();
    const busy = other.work(
      (_, { signal }) => {
        begun.resolve();
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
      },
      { concurrency: 2, graceMs: 50 },
    );
    for (const queue of [one, other]) await queue.add({ data: { n: 1 } });
    await until(() => stopped.jobs.length === 1);
    await begun.promise;
    await stopped[Symbol.asyncDispose]();
    await one[Symbol.asyncDispose]();
    // Uses fake timers for reconnect delays from here on, and advances them in real time.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const pace = setInterval(() => vi.advanceTimersByTime(10), 10);
    onTestFinished(() => clearInterval(pace));
    own.signal("SIGKILL");
    await until(() =>
      other.add({ data: { n: 2 } }).then(
        () => false,
        () => true,
      ),
    );
    await busy[Symbol.asyncDispose]();
    await other[Symbol.asyncDispose]();
    await own.restart();
    await until(async () => (await connectionsOf(own)).length === before);
    // Exceeds the longest reconnect delay, so a queue that still reconnects would connect before the next client.
    await vi.advanceTimersByTimeAsync(60_000);
    const next = await openClient(own.socketPath);
    const connections = await connectionsOf(own);
    next.disconnect();
    expect(connections).toHaveLength(before + 1);
  });

  it("sends few commands to a Redis without free memory, logs one warning, and continues when memory is free again", async () => {
    await using own = await startRedis();
    const waits: string[] = [];
    const destination = {
      write(line: string) {
        const { level, event } = JSON.parse(line);
        if (event === "jobs.failing") waits.push(level);
      },
    };
    await using queue = openJobQueue<Data>({
      redis: { endpoint: endpointOf(own.url) },
      name: "full",
      log: createLog({ level: "debug", destination }),
    });
    await using worked = collect(queue);
    await queue.add({ id: "a", data: { n: 1 } });
    await until(() => worked.jobs.length === 1);
    await queue.add({ id: "b", data: { n: 2 }, delayMs: 300 });
    await own.client.config("SET", "maxmemory", "1");
    const [callsBefore, startedAt] = [await commandsOf(own), performance.now()];
    // A delayed job starts even though Redis is full, so its start does not mean that Redis accepts writes again.
    await until(() => worked.jobs.length >= 2);
    const waitsBefore = waits.length;
    await until(() => waits.length >= waitsBefore + 2);
    const seconds = (performance.now() - startedAt) / 1_000;
    expect((await commandsOf(own)) - callsBefore).toBeLessThan(100 + 50 * seconds);
    await own.client.config("SET", "maxmemory", "0");
    await queue.add({ id: "c", data: { n: 3 } });
    await until(() => worked.jobs.length >= 3);
    expect(waits.filter((level) => level !== "debug")).toHaveLength(1);
  });
});

async function connectionsOf({ client }: RedisServer): Promise<readonly string[]> {
  return String(await client.client("LIST"))
    .trim()
    .split("\n");
}

async function commandsOf({ client }: RedisServer): Promise<number> {
  return Number(/total_commands_processed:(\d+)/.exec(await client.info("stats"))?.[1]);
}
