import { getPriority } from "node:os";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import type { SchemaAnswer, SchemaRequest } from "../../src/lib/json-schema/worker.ts";
import { createWorkerQueue, type WorkerQueueOptions } from "../../src/lib/worker-queue.ts";
import { nicesOf } from "../support/thread-nices.ts";
import { CEILING_MS, until } from "../support/until.ts";
import type { TinyAnswer, TinyRequest } from "./tiny-worker.ts";

const createQueue = (options: Partial<WorkerQueueOptions<TinyRequest>> = {}) =>
  createWorkerQueue<TinyRequest, TinyAnswer>({
    program: new URL("./tiny-worker.ts", import.meta.url),
    name: "tiny",
    maxCpuMs: CEILING_MS,
    maxQueuedPerLane: 10,
    maxHeapMiB: 64,
    ...options,
  });
const A = { lane: "a" };
const ECHO = { kind: "echo" } as const;

// `test/deep/worker-memory.test.ts` tests workers that exceed their memory limit.
test("the worker queue rejects a job with UnavailableError if its worker crashes, and runs the next jobs", async () => {
  await using queue = createQueue();
  const [failed, done] = await Promise.allSettled([queue.run({ kind: "fail" }, A), queue.run(ECHO, A)]);
  expect(failed).toMatchObject({ status: "rejected", reason: expect.any(UnavailableError) });
  expect(done).toMatchObject({ status: "fulfilled", value: { kind: "echoed" } });
});

test("the worker queue rejects only the job whose value cannot be sent to the worker", async () => {
  await using queue = createQueue();
  const [failed, done] = await Promise.allSettled([
    queue.run({ kind: "echo", value: () => 1 }, A),
    queue.run(ECHO, A),
  ]);
  expect(failed.status).toBe("rejected");
  expect(done.status).toBe("fulfilled");
});

test("the worker queue transfers a job's buffers to the worker instead of copying them", async () => {
  const [first, second] = [new Uint8Array(1_000), new Uint8Array(1_000)];
  await using queue = createQueue({
    toSend: (request) => [
      request,
      request.kind === "echo" ? [(request.value as Uint8Array).buffer as ArrayBuffer] : [],
    ],
  });
  const running = [first, second].map((value) => queue.run({ kind: "echo", value }, A));
  await running[0];
  expect(first.buffer.detached).toBe(true);
  await running[1];
  expect(second.buffer.detached).toBe(true);
});

test("the worker queue rejects jobs beyond the queue limit", async () => {
  await using queue = createQueue({ maxQueuedPerLane: 2 });
  const jobs = Array.from({ length: 5 }, () => queue.run(ECHO, A));
  const states = (await Promise.allSettled(jobs)).map(({ status }) => status);
  expect(states).toEqual(["fulfilled", "fulfilled", "rejected", "rejected", "rejected"]);
});

test("the worker queue serves its lanes round-robin, regardless of the number of jobs in each lane", async () => {
  await using queue = createQueue();
  const done: string[] = [];
  const run = async (lane: string): Promise<void> => {
    await queue.run(ECHO, { lane });
    done.push(lane);
  };
  await Promise.all([..."aaaaaa", ..."bb", ..."c"].map(run));
  expect(done.join("")).toBe("abcabaaaa");
});

test("the worker queue accepts jobs in one lane while another lane is full", async () => {
  await using queue = createQueue({ maxQueuedPerLane: 1 });
  const run = (lane: string) => queue.run(ECHO, { lane });
  const states = await Promise.allSettled([run("a"), run("a"), run("b")]);
  expect(states.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

/** A worker that never finishes loading, so that no job starts. */
const NEVER_READY = new URL("data:text/javascript,setInterval(() => {}, 1e6)");

test("the worker queue removes a canceled job immediately, so that its place in the lane is free", async () => {
  await using queue = createQueue({ program: NEVER_READY, maxQueuedPerLane: 2 });
  const caller = new AbortController();
  const run = (signal?: AbortSignal) => queue.run(ECHO, { lane: "a", ...(signal && { signal }) });
  const states: string[] = [];
  const record = (job: Promise<unknown>, name: string) =>
    job.catch((error: Error) => void states.push(`${name}: ${error.message}`));
  const jobs = [record(run(caller.signal), "gone"), record(run(), "stays"), record(run(), "full")];
  await Promise.all([jobs[2]]);
  caller.abort();
  await Promise.all([jobs[0]]);
  jobs.push(record(run(), "has room"), record(run(), "full again"), record(run(caller.signal), "too late"));
  await Promise.all(jobs.slice(-2));
  expect(states).toEqual([
    "full: tiny: too many jobs are waiting",
    "gone: tiny: the caller has canceled the job",
    "full again: tiny: too many jobs are waiting",
    "too late: tiny: the caller has canceled the job",
  ]);
  await queue[Symbol.asyncDispose]();
  await Promise.all(jobs);
});

test("the worker queue keeps no reference to the request of a canceled job", async () => {
  await using queue = createQueue({ program: NEVER_READY });
  const caller = new AbortController();
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  const request = (() => {
    const value = { body: "large" };
    const job = queue.run({ kind: "echo", value }, { lane: "a", signal: caller.signal });
    void job.catch(() => {});
    return new WeakRef(value);
  })();
  caller.abort();
  await until(() => {
    collect();
    return request.deref() === undefined;
  });
});

test("the worker queue runs the job behind a canceled job", async () => {
  await using queue = createQueue();
  const caller = new AbortController();
  const jobs = Promise.allSettled([
    queue.run(ECHO, A),
    queue.run({ kind: "fail" }, { ...A, signal: caller.signal }),
    queue.run(ECHO, A),
  ]);
  caller.abort();
  expect((await jobs).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

// Only Linux has a priority per thread.
if (process.platform === "linux")
  test("a schema worker lowers the priority of its own thread, but not of the process", async () => {
    const name = `queue ${process.pid}`;
    const before = getPriority();
    const program = new URL("../../src/lib/json-schema/worker.ts", import.meta.url);
    const bounds = { maxCpuMs: CEILING_MS, maxQueuedPerLane: 10, maxHeapMiB: 256 };
    await using queue = createWorkerQueue<SchemaRequest, SchemaAnswer>({ program, name, ...bounds });
    await queue.run({ kind: "compile", text: "{}" }, A);
    const [nice, ...others] = await nicesOf(name);
    expect(others).toEqual([]);
    // 19 is the highest nice value.
    expect(nice).toBeGreaterThanOrEqual(Math.min(19, before + 1));
    expect(getPriority()).toBe(before);
  });
