import { LRUCache } from "lru-cache";
import { UnavailableError } from "../../lib/errors.ts";
import { luaScript } from "../../lib/lua.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { RedisCaller } from "../connection/general-connection.ts";
import { rateKey } from "../keys.ts";

/** How much of a limit a key has left in its window. */
export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  /** False: this was one too many. */
  readonly allowed: boolean;
}

/** So many in a window of fixed length, for each key; a window begins with its first count. */
export interface RateLimiter {
  /** The state of a key that has taken nothing. */
  readonly untouched: RateLimitState;
  /** Counts one. Never throws. */
  readonly take: (key: string) => Promise<RateLimitState>;
}

interface RateLimit {
  /** Names the counted thing in the keys of Redis. */
  readonly name: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

interface RateCount {
  readonly counted: number;
  readonly endsInMs: number;
}

/** A request must not wait for its counter for long. */
const TIMEOUT_MS = 300;
const SKIP_REDIS_MS = 1_000;
/** Keys counted in this process while Redis is away; beyond it the least recent window begins anew. */
const MAX_LOCAL_KEYS = 50_000;

/**
 * Makes limiters that all gateways share through Redis, by one script call a count. While Redis is away or slow each gateway
 * counts for itself, from nothing: of n gateways a caller may have up to n times the limit, and is never turned away because a
 * counter is missing. Redis is then left alone for a second at a time: one request of each second finds out whether it is back.
 */
export function createRateLimiters(deps: {
  readonly redis: RedisCaller;
  /** How long a count may take before it is Redis that is slow; default 300. */
  readonly timeoutMs?: number | undefined;
}) {
  const { redis, timeoutMs: patienceMs = TIMEOUT_MS } = deps;
  const runLua = luaScript(redis, new URL("./rate-count.lua", import.meta.url));
  const windows = new LRUCache<string, number>(upToEntries(MAX_LOCAL_KEYS));
  let skipRedisUntilMs = 0;
  let failing = false;

  async function countInRedis(key: string, windowSeconds: number): Promise<RateCount> {
    const nowMs = performance.now();
    if (nowMs < skipRedisUntilMs) throw new UnavailableError("Redis is not asked for counters just now");
    if (failing) skipRedisUntilMs = nowMs + SKIP_REDIS_MS;
    try {
      const late = `Redis has not counted within ${patienceMs} ms`;
      const reply = await withTimeout(patienceMs, runLua([key], [windowSeconds]), late);
      failing = false;
      skipRedisUntilMs = 0;
      const [counted, endsInMs] = reply as [number, number];
      return { counted, endsInMs };
    } catch (error) {
      failing = true;
      skipRedisUntilMs = performance.now() + SKIP_REDIS_MS;
      throw error;
    }
  }

  function countLocally(key: string, windowSeconds: number): RateCount {
    const counted = (windows.get(key) ?? 0) + 1;
    windows.set(key, counted, { ttl: windowSeconds * 1_000, noUpdateTTL: true });
    return { counted, endsInMs: windows.getRemainingTTL(key) };
  }

  return ({ name, limit, windowSeconds }: RateLimit): RateLimiter => ({
    untouched: { limit, remaining: limit, resetSeconds: windowSeconds, allowed: true },
    async take(key) {
      const counter = rateKey(name, key);
      const { counted, endsInMs } = await countInRedis(counter, windowSeconds).catch(() =>
        countLocally(counter, windowSeconds),
      );
      return {
        limit,
        remaining: Math.max(0, limit - counted),
        resetSeconds: Math.max(1, Math.ceil(endsInMs / 1_000)),
        allowed: counted <= limit,
      };
    },
  });
}
