import { LRUCache } from "lru-cache";
import { QuotaError } from "../errors.ts";
import { upToEntries } from "../up-to-entries.ts";

/** How much processor time each lane may have for compilations: a minute's worth at once, then as it comes back. */
export interface CompileQuota {
  /** @throws QuotaError where the lane has spent all that it may */
  readonly require: (lane: string) => void;
  readonly spend: (lane: string, cpuMs: number) => void;
}

const MINUTE_MS = 60_000;
const MAX_LANES = 10_000;

/**
 * A compilation is begun while anything is left, and paid for when its time is known: what it took too much is missing afterwards.
 *
 * @param options.msPerMinuteOf undefined: as much as it likes
 * @param options.nowMs monotonic
 */
export function createCompileQuota(options: {
  readonly msPerMinuteOf: (lane: string) => number | undefined;
  readonly nowMs?: () => number;
}): CompileQuota {
  const { msPerMinuteOf, nowMs = () => performance.now() } = options;
  /** What each has spent and not got back, at that moment. */
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
      throw new QuotaError("the organization has spent its time for compiling schemas", {
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
