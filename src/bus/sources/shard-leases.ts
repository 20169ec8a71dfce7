import type { RedisBus } from "../connection/redis.ts";
import { SHARD_KEYS } from "../keys.ts";
import { loadScript, runScript } from "../scripts.ts";

/** Sources are leased by shards, not one by one: thousands of leases would be renewed for nothing. */
export const SHARDS = 256;

/** The shard of a source; neighbours in number are spread over all. */
export const shardOf = (channelNumber: number): number =>
  (Math.imul(channelNumber ^ (channelNumber >>> 16), 0x9e3779b1) >>> 24) % SHARDS;

export interface ShardLease {
  /** Live workers, the caller among them. */
  readonly workers: number;
  /** How many shards each has when all is even. */
  readonly share: number;
  readonly held: readonly number[];
}

/** Which worker runs which shard. By the clock of Redis; each method throws UnavailableError when Redis does not answer. */
export interface ShardLeases {
  /**
   * Keeps the worker and all its shards for `ttlMs` from some moment after the call began, and takes up to `most` free shards where
   * it has less than its share. A worker whose lease had ended finds what nobody took since.
   */
  renew(worker: string, options: { readonly ttlMs: number; readonly most: number }): Promise<ShardLease>;
  /** Gives back shards in which nothing of the worker runs any more. */
  release(worker: string, shards: readonly number[]): Promise<void>;
  /** Gives back everything, and is no worker any more. */
  leave(worker: string): Promise<void>;
  isLive(worker: string): Promise<boolean>;
}

export function createShardLeases({ redis }: { readonly redis: RedisBus }): ShardLeases {
  const renewScript = loadScript(new URL("./rebalance.lua", import.meta.url));
  const releaseScript = loadScript(new URL("./shard-release.lua", import.meta.url));
  const keys = [SHARD_KEYS.workers, SHARD_KEYS.owners];
  return {
    async renew(worker, { ttlMs, most }) {
      const reply = await runScript(redis, renewScript, keys, [worker, ttlMs, SHARDS, most]);
      const [workers = 1, share = SHARDS, ...held] = reply as number[];
      return { workers, share, held };
    },
    async release(worker, shards) {
      if (shards.length > 0) await runScript(redis, releaseScript, keys, [worker, "0", ...shards]);
    },
    async leave(worker) {
      await runScript(redis, releaseScript, keys, [worker, "1"]);
    },
    async isLive(worker) {
      const [end, time] = await Promise.all([
        redis.call("zscore", [SHARD_KEYS.workers, worker]),
        redis.call("time", []),
      ]);
      const [seconds] = time as string[];
      return end !== null && Number(end) > Number(seconds) * 1000;
    },
  };
}
