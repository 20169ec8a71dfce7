import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ShardLease, ShardLeases } from "../../../../src/bus/sources/shard-leases.ts";
import { startShards } from "../../../../src/channels/pull/streams/shards.ts";
import { createLog } from "../../../../src/log.ts";

const TTL_MS = 10_000;
/** Nine tenths of the lease, which is the part that a worker uses. */
const USED_MS = 9_000;

/** Fake timers, except for the pause between two renewals. */
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Creates leases whose responses the test controls. `renewals` holds the pending renewals. */
function startWorker(vacate: () => Promise<void> = async () => {}) {
  const renewals: PromiseWithResolvers<ShardLease>[] = [];
  const released: (readonly number[])[] = [];
  const leases: ShardLeases = {
    renew() {
      const renewal = Promise.withResolvers<ShardLease>();
      renewals.push(renewal);
      return renewal.promise;
    },
    release: async (_, shards) => void released.push(shards),
    leave: async () => {},
    isLive: async () => true,
  };
  const heldCounts: number[] = [];
  const log = createLog({ level: "silent" });
  const timing = { ttlMs: TTL_MS, tickEveryMs: 1 };
  const onHeld = (held: ReadonlySet<number>) => void heldCounts.push(held.size);
  const shards = startShards({ leases, worker: "wk_1", log, onHeld, vacate, timing });
  async function untilRenewal(): Promise<void> {
    while (renewals.length === 0) await turn();
  }
  /** Responds to the pending renewal and waits for the next one. */
  async function respond(held: readonly number[], share = 256): Promise<void> {
    await untilRenewal();
    renewals.shift()?.resolve({ workers: 1, share, held });
    await untilRenewal();
  }
  return {
    shards,
    heldCounts,
    released,
    untilRenewal,
    respond,
    async [Symbol.asyncDispose]() {
      const disposing = shards[Symbol.asyncDispose]();
      for (const renewal of renewals) renewal.resolve({ workers: 1, share: 256, held: [] });
      await disposing;
    },
  };
}

it("a worker that cannot renew its shard lease gives up its shards before the lease ends", async () => {
  await using worker = startWorker();
  await worker.respond([1, 2, 3]);
  vi.advanceTimersByTime(USED_MS - 1);
  expect(worker.shards.held().size).toBe(3);
  vi.advanceTimersByTime(1);
  expect(worker.shards.held().size).toBe(0);
  expect(worker.heldCounts).toEqual([3, 0]);
});

it("a worker that renews its shard lease keeps its shards for one lease time, counted from the renewal request", async () => {
  await using worker = startWorker();
  await worker.respond([1, 2, 3]);
  vi.advanceTimersByTime(USED_MS / 2);
  await worker.respond([1, 2, 3]);
  // The third renewal was just sent and gets its response later.
  vi.advanceTimersByTime(1_000);
  await worker.respond([1, 2, 3]);
  vi.advanceTimersByTime(USED_MS - 1_000 - 1);
  expect(worker.shards.held().size).toBe(3);
  vi.advanceTimersByTime(1);
  expect(worker.shards.held().size).toBe(0);
});

it("a worker ignores the shards in a lease response that arrives after the lease may have ended", async () => {
  await using worker = startWorker();
  await worker.untilRenewal();
  vi.advanceTimersByTime(USED_MS);
  await worker.respond([1, 2, 3]);
  expect(worker.heldCounts).toEqual([]);
  await worker.respond([1, 2, 3]);
  expect(worker.heldCounts).toEqual([3]);
});

it("a worker releases its surplus shards once all of their sources have stopped", async () => {
  const vacated = Promise.withResolvers<void>();
  await using worker = startWorker(() => vacated.promise);
  await worker.respond([1, 2, 3], 2);
  expect([...worker.shards.held()]).toEqual([1, 2]);
  await worker.respond([1, 2, 3], 2);
  expect(worker.released).toEqual([]);
  vacated.resolve();
  await worker.respond([1, 2, 3], 2);
  expect(worker.released[0]).toEqual([3]);
});
