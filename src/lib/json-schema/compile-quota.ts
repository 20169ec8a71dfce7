import { LRUCache } from "lru-cache";
import { QuotaError } from "../errors.ts";
import { upToEntries } from "../up-to-entries.ts";

/** CPU time quota per lane for compilations. The budget of one minute is available at once and refills continuously. */
export interface CompileQuota {
  /** @throws QuotaError if the lane has no quota left */
  readonly require: (lane: string) => void;
  readonly spend: (lane: string, cpuMs: number) => void;
}

const MINUTE_MS = 60_000;
const MAX_LANES = 10_000;

/**
 * Creates the quota. A compilation may start while any quota is left, and is charged when its CPU time is known. The quota can therefore
 * become negative.
 *
 * @param options.msPerMinuteOf returns a lane's quota in ms per minute; `undefined` for no limit
 * @param options.nowMs monotonic
 */
export function createCompileQuota(options: {
  readonly msPerMinuteOf: (lane: string) => number | undefined;
  readonly nowMs?: () => number;
}): CompileQuota {
  const { msPerMinuteOf, nowMs = () => performance.now() } = options;
  /** CPU time per lane that was used and has not been refilled, as of `atMs`. */
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
