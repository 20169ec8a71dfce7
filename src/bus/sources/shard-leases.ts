import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { readRedisTimeMs } from "../groups/groups.ts";
import { SHARD_KEYS } from "../keys.ts";

/** Sources are leased by shards, not one by one: thousands of leases would be renewed for nothing. */
export const SHARDS = 256;

/** The shard of a source; neighbours in number are spread over all. */
export const computeShard = (channelNumber: number): number =>
  (Math.imul(channelNumber ^ (channelNumber >>> 16), 0x9e3779b1) >>> 24) % SHARDS;

export interface ShardLease {
  /** Live workers, the caller among them. */
  readonly workers: number;
  /** How many shards each has when all is even. */
  readonly share: number;
  readonly held: readonly number[];
}

export type ShardLeases = ReturnType<typeof createShardLeases>;

/** Which worker runs which shard. By the clock of Redis; each method throws UnavailableError when Redis does not answer. */
export function createShardLeases({ redis }: { readonly redis: RedisBus }) {
  const runRenew = luaScript(redis, new URL("./rebalance.lua", import.meta.url));
  const runRelease = luaScript(redis, new URL("./shard-release.lua", import.meta.url));
  const keys = [SHARD_KEYS.workers, SHARD_KEYS.owners];
  return {
    /**
     * Keeps the worker and all its shards for `ttlMs` from some moment after the call began, and takes up to `most` free shards
     * where it has less than its share. A worker whose lease had ended finds what nobody took since.
     */
    async renew(
      worker: string,
      { ttlMs, most }: { readonly ttlMs: number; readonly most: number },
    ): Promise<ShardLease> {
      const reply = await runRenew(keys, [worker, ttlMs, SHARDS, most]);
      const [workers = 1, share = SHARDS, ...held] = reply as number[];
      return { workers, share, held };
    },
    /** Gives back shards in which nothing of the worker runs any more. */
    async release(worker: string, shards: readonly number[]): Promise<void> {
      if (shards.length > 0) await runRelease(keys, [worker, "0", ...shards]);
    },
    /** Gives back everything, and is no worker any more. */
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
