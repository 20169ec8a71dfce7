import { expect, test } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import type { SchemaAnswer, SchemaRequest } from "../../src/lib/json-schema/worker.ts";
import { createWorkerQueue, type WorkerQueueOptions } from "../../src/lib/worker-queue.ts";
import { CEILING_MS } from "../support/until.ts";

const createQueue = (options: Partial<WorkerQueueOptions> = {}) =>
  createWorkerQueue<SchemaRequest, SchemaAnswer>({
    program: new URL("../../src/lib/json-schema/worker.ts", import.meta.url),
    name: "schemas",
    maxCpuMs: CEILING_MS,
    maxQueuedPerLane: 10,
    maxHeapMiB: 256,
    ...options,
  });
const A = { lane: "a" };

test("a job that needs too much memory ends its worker, not its process, and the next has a new one", async () => {
  await using queue = createQueue({ maxHeapMiB: 48 });
  const properties = Object.fromEntries(
    Array.from({ length: 60_000 }, (_, i) => [`p${i}`, { type: "string" }]),
  );
  const [hungry, modest] = await Promise.all([
    queue.run({ kind: "compile", text: JSON.stringify({ properties }) }, A),
    queue.run({ kind: "compile", text: "{}" }, A),
  ]);
  expect(hungry.kind).toBe("exceeded");
  expect(modest).toMatchObject({ kind: "compiled", result: { ok: true } });
});

test("a job on which the worker fails is unavailable, and those behind it are done", async () => {
  await using queue = createQueue();
  const [failed, done] = await Promise.allSettled([
    queue.run({ kind: "check", digest: "a", code: "syntax error", value: 1 }, A),
    queue.run({ kind: "compile", text: "{}" }, A),
  ]);
  expect(failed).toMatchObject({ status: "rejected", reason: expect.any(UnavailableError) });
  expect(done).toMatchObject({ status: "fulfilled", value: { kind: "compiled" } });
});

test("a value that cannot be sent fails alone", async () => {
  await using queue = createQueue();
  const [failed, done] = await Promise.allSettled([
    queue.run({ kind: "check", digest: "a", code: "", value: () => 1 }, A),
    queue.run({ kind: "compile", text: "{}" }, A),
  ]);
  expect(failed.status).toBe("rejected");
  expect(done.status).toBe("fulfilled");
});

test("more jobs than the queue holds are unavailable", async () => {
  await using queue = createQueue({ maxQueuedPerLane: 2 });
  const jobs = Array.from({ length: 5 }, () => queue.run({ kind: "compile", text: "{}" }, A));
  const states = (await Promise.allSettled(jobs)).map(({ status }) => status);
  expect(states).toEqual(["fulfilled", "fulfilled", "rejected", "rejected", "rejected"]);
});

test("generated code may load nothing but what validators need", async () => {
  await using queue = createQueue();
  const code = 'module.exports = () => true; require("node:fs");';
  await expect(queue.run({ kind: "check", digest: "a", code, value: 1 }, A)).rejects.toThrow(
    UnavailableError,
  );
});

test("lanes take turns, however many jobs one of them has", async () => {
  await using queue = createQueue();
  const done: string[] = [];
  const ask = async (lane: string): Promise<void> => {
    await queue.run({ kind: "compile", text: "{}" }, { lane });
    done.push(lane);
  };
  await Promise.all([..."aaaaaa", ..."bb", ..."c"].map(ask));
  expect(done.join("")).toBe("abcabaaaa");
});

test("a full lane does not close another one", async () => {
  await using queue = createQueue({ maxQueuedPerLane: 1 });
  const ask = (lane: string) => queue.run({ kind: "compile", text: "{}" }, { lane });
  const states = await Promise.allSettled([ask("a"), ask("a"), ask("b")]);
  expect(states.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a job for which nobody waits any more is not begun", async () => {
  await using queue = createQueue();
  const asker = { lane: "a", isGone: false };
  const jobs = Promise.allSettled([
    queue.run({ kind: "compile", text: "{}" }, { lane: "a" }),
    queue.run({ kind: "check", digest: "a", code: "syntax error", value: 1 }, asker),
    queue.run({ kind: "compile", text: "{}" }, { lane: "a" }),
  ]);
  asker.isGone = true;
  const [first, gone, last] = await jobs;
  expect([first.status, last.status]).toEqual(["fulfilled", "fulfilled"]);
  expect(gone).toMatchObject({
    status: "rejected",
    reason: { message: expect.stringContaining("nobody waits") },
  });
});
