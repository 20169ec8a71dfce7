import { LRUCache } from "lru-cache";
import { UnavailableError } from "../../lib/errors.ts";
import { luaScript } from "../../lib/lua.ts";
import { upToEntries } from "../../lib/up-to-entries.ts";
import { withTimeout } from "../../lib/wait.ts";
import type { RedisCaller } from "../connection/general-connection.ts";
import { rateKey } from "../keys.ts";

export interface RateLimitState {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
  readonly allowed: boolean;
}

/** Limits the number of requests per key in a fixed time window. The window starts with the first request of the key. */
export interface RateLimiter {
  /** State of a key without any requests. */
  readonly untouched: RateLimitState;
  /** Counts one request. Never throws. */
  readonly take: (key: string) => Promise<RateLimitState>;
}

interface RateLimit {
  /** Part of the Redis key. */
  readonly name: string;
  readonly limit: number;
  readonly windowSeconds: number;
}

interface RateCount {
  readonly counted: number;
  readonly endsInMs: number;
}

/** Default timeout in ms for counting a request in Redis. It is short, because an HTTP request waits for the result. */
const TIMEOUT_MS = 300;
const SKIP_REDIS_MS = 1_000;
/** Maximum number of keys to count in this process while Redis is unreachable. Above it, the least recently used key is forgotten. */
const MAX_LOCAL_KEYS = 50_000;

/**
 * Creates rate limiters that all gateways share through Redis, with one script call per request.
 *
 * While Redis is unreachable or slow, each gateway counts on its own, starting at zero. With n gateways, a caller may then get up to n
 * times the limit, but no request is rejected because Redis is down. One request per second tests whether Redis is back.
 */
export function createRateLimiters(deps: {
  readonly redis: RedisCaller;
  /** Maximum time to wait for Redis, in ms. After it, this process counts requests itself. Default: 300. */
  readonly timeoutMs?: number | undefined;
}) {
  const { redis, timeoutMs = TIMEOUT_MS } = deps;
  const runLua = luaScript(redis, new URL("./rate-count.lua", import.meta.url));
  const windows = new LRUCache<string, number>(upToEntries(MAX_LOCAL_KEYS));
  let skipRedisUntilMs = 0;
  let failing = false;

  async function countInRedis(key: string, windowSeconds: number): Promise<RateCount> {
    const nowMs = performance.now();
    if (nowMs < skipRedisUntilMs)
      throw new UnavailableError("Redis failed recently; requests are counted in this process");
    if (failing) skipRedisUntilMs = nowMs + SKIP_REDIS_MS;
    try {
      const late = `Redis did not count the request within ${timeoutMs} ms`;
      const reply = await withTimeout(timeoutMs, runLua([key], [windowSeconds]), late);
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
