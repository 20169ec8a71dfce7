import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { rateKeyPrefix } from "../bus/keys.ts";
import type { CountRate } from "../bus/limits/rate-counter.ts";

/** Where somebody stands in a window. */
export interface Standing {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** False: this was one too many. */
  readonly allowed: boolean;
}

/** So many in a window of so many seconds, for each key. */
export interface Budget {
  /** Where stands who has taken nothing. */
  readonly untouched: Standing;
  readonly take: (key: string) => Promise<Standing>;
}

export interface BudgetOptions {
  readonly count: CountRate;
  /** What is counted, for the key in Redis. */
  readonly name: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

/**
 * A budget that all gateways share through Redis. While Redis is away each gateway counts for itself, from nothing: of n
 * gateways a caller may have up to n times the limit, and is never turned away because a counter is missing.
 */
export function createBudget({ count, name, limit, windowSeconds }: BudgetOptions): Budget {
  const window = { points: limit, duration: windowSeconds };
  const limiter = new RateLimiterRedis({
    ...window,
    keyPrefix: rateKeyPrefix(name),
    storeClient: storeOver(count),
    insuranceLimiter: new RateLimiterMemory(window),
  });
  const standingOf = (res: RateLimiterRes, allowed: boolean): Standing => ({
    limit,
    remaining: Math.max(0, res.remainingPoints),
    resetSeconds: Math.max(1, Math.ceil(res.msBeforeNext / 1_000)),
    allowed,
  });
  return {
    untouched: { limit, remaining: limit, resetSeconds: windowSeconds, allowed: true },
    async take(key) {
      try {
        return standingOf(await limiter.consume(key), true);
      } catch (refused) {
        if (refused instanceof RateLimiterRes) return standingOf(refused, false);
        throw refused;
      }
    },
  };
}

/** All that the limiter asks of a client: its one script, by the name under which it would define it on ioredis. */
const storeOver = (count: CountRate) => ({
  async rlflxIncr([key = "", points, windowSeconds]: readonly string[]): Promise<readonly number[]> {
    const { counted, endsInMs } = await count(key, Number(points), Number(windowSeconds));
    return [counted, endsInMs];
  },
});
