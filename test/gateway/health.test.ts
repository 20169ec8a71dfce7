import { beforeEach, expect, it } from "vitest";
import type { RedisBus } from "../../src/bus/connection/redis.ts";
import { createHealthChecks } from "../../src/gateway/health.ts";
import type { CheckResult } from "../../src/http/health.ts";

let problems: readonly string[];
let redis: Partial<ReturnType<RedisBus["state"]>>;
let masterKeyProblem: string | undefined;
let stalenessMs: number;
let stopping: AbortController;
beforeEach(() => {
  problems = [];
  redis = { ready: true, problems: [], durability: "fsync" };
  masterKeyProblem = undefined;
  stalenessMs = 0;
  stopping = new AbortController();
});

async function check(): Promise<Readonly<Record<string, CheckResult>>> {
  const checks = createHealthChecks({
    stores: { problems: () => problems },
    redis: { state: () => redis as ReturnType<RedisBus["state"]> },
    sources: { shards: () => new Set([1, 2]), workers: () => 3 },
    masterKey: { problem: () => masterKeyProblem },
    changes: { stalenessMs: () => stalenessMs },
    stopping: stopping.signal,
  });
  const { signal } = new AbortController();
  return Object.fromEntries(
    await Promise.all(checks.map(async (one) => [one.name, await one.check({ signal })] as const)),
  );
}

it("the readiness checks of a gateway without problems succeed and include the durability of Redis", async () => {
  const results = await check();
  expect(Object.values(results).map(({ ok }) => ok)).toEqual([true, true, true, true, true, true]);
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
