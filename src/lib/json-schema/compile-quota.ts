import { LRUCache } from "lru-cache";
import { QuotaError } from "../errors.ts";
import { upToEntries } from "../up-to-entries.ts";

/**
 * Limits the CPU time that each lane (an organization) may spend on compiling schemas. An unused quota accumulates for at most a
 * minute.
 */
export interface CompileQuota {
  /** @throws QuotaError if the lane has no quota left */
  readonly require: (lane: string) => void;
  readonly spend: (lane: string, cpuMs: number) => void;
}

const MINUTE_MS = 60_000;
const MAX_LANES = 10_000;

/**
 * Creates a quota. A compilation may start while any quota is left. Its CPU time is charged afterwards, so the quota can become
 * negative.
 *
 * @param options.msPerMinuteOf returns the quota of a lane in ms of CPU time per minute; `undefined` for no limit
 * @param options.nowMs monotonic clock
 */
export function createCompileQuota(options: {
  readonly msPerMinuteOf: (lane: string) => number | undefined;
  readonly nowMs?: () => number;
}): CompileQuota {
  const { msPerMinuteOf, nowMs = () => performance.now() } = options;
  /** CPU time that each lane has used, in ms, after deducting the quota that was refilled until `atMs`. */
  const spent = new LRUCache<string, { readonly cpuMs: number; readonly atMs: number }>(
    upToEntries(MAX_LANES),
  );

  const spentBy = (lane: string, perMinute: number): number => {
    const known = spent.get(lane);
    return known === undefined
      ? 0
      : Math.max(0, known.cpuMs - ((nowMs() - known.atMs) * perMinute) / MINUTE_MS);
  };

  return {
    require(lane) {
      const perMinute = msPerMinuteOf(lane);
      if (perMinute === undefined) return;
      const overMs = spentBy(lane, perMinute) - perMinute;
      if (overMs < 0) return;
      const waitMs = Math.max(1, (overMs * MINUTE_MS) / perMinute);
      throw new QuotaError("the organization has used up its CPU time for compiling schemas", {
        retryAfterSeconds: Math.ceil(waitMs / 1_000),
      });
    },
    spend(lane, cpuMs) {
      const perMinute = msPerMinuteOf(lane);
      if (perMinute === undefined) return;
      spent.set(lane, { cpuMs: spentBy(lane, perMinute) + cpuMs, atMs: nowMs() });
    },
  };
}
