import { beforeEach, expect, it } from "vitest";
import type { RedisBus } from "../../src/bus/connection/redis.ts";
import { createHealthChecks } from "../../src/gateway/health.ts";
import type { CheckResult } from "../../src/http/health.ts";
import { type DiskSpace, readDiskSpace } from "../../src/lib/servers/disk-space.ts";

let problems: readonly string[];
let redis: Partial<ReturnType<RedisBus["state"]>>;
let masterKeyProblem: string | undefined;
let stalenessMs: number;
let warnings: readonly string[];
let disk: DiskSpace | undefined;
let stopping: AbortController;
beforeEach(() => {
  problems = [];
  redis = { ready: true, problems: [], durability: "fsync" };
  masterKeyProblem = undefined;
  stalenessMs = 0;
  warnings = [];
  disk = undefined;
  stopping = new AbortController();
});

async function check(): Promise<Readonly<Record<string, CheckResult>>> {
  const checks = createHealthChecks({
    stores: { problems: () => problems, diskSpace: () => disk },
    redis: { state: () => redis as ReturnType<RedisBus["state"]> },
    sources: { shards: () => new Set([1, 2]), workers: () => 3 },
    masterKey: { problem: () => masterKeyProblem },
    changes: { stalenessMs: () => stalenessMs },
    warnings: { redis: () => warnings, database: () => warnings },
    stopping: stopping.signal,
  });
  const { signal } = new AbortController();
  return Object.fromEntries(
    await Promise.all(checks.map(async (one) => [one.name, await one.check({ signal })] as const)),
  );
}

it("the readiness checks of a gateway without problems succeed and include the durability of Redis", async () => {
  const results = await check();
  expect(Object.values(results).map(({ ok }) => ok)).toEqual(Array(7).fill(true));
  expect(results.redis?.facts).toMatchObject({ durability: "fsync" });
  expect(results.sources?.facts).toEqual({ shards: 2, workers: 3 });
});

it("the readiness checks contain the reason if the embedded servers, Redis, the master key or a shutdown prevents readiness", async () => {
  problems = ["the own PostgreSQL is starting"];
  masterKeyProblem = "was changed";
  redis = { ready: false, problems: ["full"], durability: "fsync" };
  stopping.abort();
  expect(await check()).toMatchObject({
    running: { ok: false, reason: "is stopping" },
    servers: { ok: false, reason: "the own PostgreSQL is starting" },
    redis: { ok: false, reason: "full" },
    masterKey: { ok: false, reason: "was changed" },
  });
});

it("the readiness checks report a database change feed that is stale, and fail once it has been stale for ten minutes", async () => {
  const changes = async () => (await check()).changes;
  expect(await changes()).toMatchObject({ ok: true, facts: { activeWithinTwoSeconds: true } });
  stalenessMs = 30_000;
  expect(await changes()).toMatchObject({
    ok: true,
    facts: { activeWithinTwoSeconds: false, stalenessSeconds: 30 },
  });
  stalenessMs = 600_001;
  expect(await changes()).toMatchObject({
    ok: false,
    reason: "the change feed has been unreadable for 600 s",
  });
});

it("the readiness checks of Redis and the database succeed with their warnings", async () => {
  warnings = ["needs attention"];
  expect(await check()).toMatchObject({
    redis: { ok: true, warnings },
    database: { ok: true, warnings },
  });
});

it.each([
  ["256 MiB", { freeBytes: 255 * 2 ** 20, freeFraction: 0.5 }, "255 MiB (50 %)"],
  ["5 %", { freeBytes: 2 ** 40, freeFraction: 0.04 }, "1048576 MiB (4 %)"],
])("the readiness check of the embedded servers warns if less than %s of their disk are free", async (_, space, text) => {
  disk = { freeBytes: 256 * 2 ** 20, freeFraction: 0.05 };
  expect((await check()).servers).toEqual({ ok: true });
  disk = space;
  expect((await check()).servers).toEqual({ ok: true, warnings: [expect.stringContaining(text)] });
  problems = ["the embedded Redis exited (exit code 1) and is being restarted"];
  expect((await check()).servers).toEqual({
    ok: false,
    reason: expect.stringMatching(/being restarted; The disk of the data directory has/),
  });
});

it("the free space of a disk is read in bytes and as a fraction", () => {
  const { freeBytes, freeFraction } = readDiskSpace(import.meta.dirname);
  expect(freeBytes).toBeGreaterThan(0);
  expect(freeFraction).toSatisfy((part: number) => part > 0 && part <= 1);
});
