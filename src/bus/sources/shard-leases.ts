import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { readRedisTimeMs } from "../groups/groups.ts";
import { SHARD_KEYS } from "../keys.ts";

/**
 * Number of shards, which are fixed groups of pull sources. Workers lease whole shards, because renewing thousands of single leases
 * would be expensive.
 */
export const SHARDS = 256;

/** Returns the shard of a pull source. Sources with consecutive channel ids get different shards. */
export const computeShard = (channelNumber: number): number =>
  (Math.imul(channelNumber ^ (channelNumber >>> 16), 0x9e3779b1) >>> 24) % SHARDS;

export interface ShardLease {
  /** Number of live workers, including the caller. */
  readonly workers: number;
  /** Fair share of shards per worker, rounded up. */
  readonly share: number;
  readonly held: readonly number[];
}

export type ShardLeases = ReturnType<typeof createShardLeases>;

/**
 * Leases that assign groups of pull sources (shards) to workers. They expire by the clock of Redis.
 *
 * All methods throw UnavailableError if Redis does not reply.
 */
export function createShardLeases({ redis }: { readonly redis: RedisBus }) {
  const runRenew = luaScript(redis, new URL("./rebalance.lua", import.meta.url));
  const runRelease = luaScript(redis, new URL("./shard-release.lua", import.meta.url));
  const keys = [SHARD_KEYS.workers, SHARD_KEYS.owners];
  return {
    /**
     * Renews the lease of a worker and all its shards for `ttlMs`, counted from a moment during this call. Takes up to `most` free shards
     * if the worker has fewer than its fair share. After an expired lease, the worker keeps the shards that no other worker has taken.
     */
    async renew(
      worker: string,
      { ttlMs, most }: { readonly ttlMs: number; readonly most: number },
    ): Promise<ShardLease> {
      const reply = await runRenew(keys, [worker, ttlMs, SHARDS, most]);
      const [workers = 1, share = SHARDS, ...held] = reply as number[];
      return { workers, share, held };
    },
    /** Releases shards. Call it only after the worker has stopped all pull sources in these shards. */
    async release(worker: string, shards: readonly number[]): Promise<void> {
      if (shards.length > 0) await runRelease(keys, [worker, "0", ...shards]);
    },
    async leave(worker: string): Promise<void> {
      await runRelease(keys, [worker, "1"]);
    },
    async isLive(worker: string): Promise<boolean> {
      const score = redis.call("zscore", [SHARD_KEYS.workers, worker]);
      const [end, nowMs] = await Promise.all([score, readRedisTimeMs(redis)]);
      return end !== null && Number(end) > nowMs;
    },
  };
}
