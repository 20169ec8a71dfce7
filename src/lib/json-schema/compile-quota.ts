import { ownRates, type Rates } from "../../limits/shared-rates.ts";
import { QuotaError } from "../errors.ts";

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

/**
 * Creates a quota. A compilation may start while any quota is left. Its CPU time is charged afterwards, so the quota can become
 * negative.
 *
 * @param options.msPerMinuteOf returns the quota of a lane in ms of CPU time per minute; `undefined` for no limit
 * @param options.nowMs monotonic clock
 * @param options.rates rates that all processes of this machine share
 */
export function createCompileQuota(options: {
  readonly msPerMinuteOf: (lane: string) => number | undefined;
  readonly nowMs?: () => number;
  readonly rates?: Rates | undefined;
}): CompileQuota {
  const { msPerMinuteOf, nowMs = () => performance.now(), rates = ownRates } = options;
  /** A token is one millisecond of CPU time. */
  const buckets = rates.buckets<string>("schema.organization", { burstMs: MINUTE_MS });
  const perSecond = (lane: string): number | undefined => {
    const perMinute = msPerMinuteOf(lane);
    return perMinute === undefined ? undefined : perMinute / 60;
  };
  return {
    require(lane) {
      const waitMs = buckets.look(lane, perSecond(lane), nowMs());
      if (waitMs === 0) return;
      throw new QuotaError("the organization has used up its CPU time for compiling schemas", {
        retryAfterSeconds: Math.ceil(waitMs / 1_000),
      });
    },
    spend: (lane, cpuMs) => buckets.overdraw(lane, cpuMs, perSecond(lane), nowMs()),
  };
}
