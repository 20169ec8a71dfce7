import { expect, test } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { createWorkerLane } from "../../../src/lib/json-schema/worker-lane.ts";
import { CEILING_MS } from "../../support/until.ts";

const OPTIONS = { timeoutMs: CEILING_MS, maxQueued: 10, maxHeapMiB: 256 };

test("a job that needs too much memory ends its worker, not its process, and the next has a new one", async () => {
  await using lane = createWorkerLane({ ...OPTIONS, maxHeapMiB: 48 });
  const properties = Object.fromEntries(
    Array.from({ length: 60_000 }, (_, i) => [`p${i}`, { type: "string" }]),
  );
  const [hungry, modest] = await Promise.all([
    lane.run({ kind: "compile", text: JSON.stringify({ properties }) }),
    lane.run({ kind: "compile", text: "{}" }),
  ]);
  expect(hungry.kind).toBe("exceeded");
  expect(modest).toMatchObject({ kind: "compiled", result: { ok: true } });
});

test("a job on which the worker fails is unavailable, and those behind it are done", async () => {
  await using lane = createWorkerLane(OPTIONS);
  const [failed, done] = await Promise.allSettled([
    lane.run({ kind: "check", digest: "a", code: "syntax error", value: 1 }),
    lane.run({ kind: "compile", text: "{}" }),
  ]);
  expect(failed).toMatchObject({ status: "rejected", reason: expect.any(UnavailableError) });
  expect(done).toMatchObject({ status: "fulfilled", value: { kind: "compiled" } });
});

test("a value that cannot be sent fails alone", async () => {
  await using lane = createWorkerLane(OPTIONS);
  const [failed, done] = await Promise.allSettled([
    lane.run({ kind: "check", digest: "a", code: "", value: () => 1 }),
    lane.run({ kind: "compile", text: "{}" }),
  ]);
  expect(failed.status).toBe("rejected");
  expect(done.status).toBe("fulfilled");
});

test("more jobs than the queue holds are unavailable", async () => {
  await using lane = createWorkerLane({ ...OPTIONS, maxQueued: 2 });
  const jobs = Array.from({ length: 5 }, () => lane.run({ kind: "compile", text: "{}" }));
  const states = (await Promise.allSettled(jobs)).map(({ status }) => status);
  expect(states).toEqual(["fulfilled", "fulfilled", "rejected", "rejected", "rejected"]);
});

test("generated code may load only the modules that validators need", async () => {
  await using lane = createWorkerLane(OPTIONS);
  const code = 'module.exports = () => true; require("node:fs");';
  await expect(lane.run({ kind: "check", digest: "a", code, value: 1 })).rejects.toThrow(UnavailableError);
});
