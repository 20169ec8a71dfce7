import type { Log } from "../log.ts";
import type { DurabilityLevel } from "./durability.ts";

export interface OpenRedisOptions {
  /** A comma list of `redis://`, `rediss://` or `unix://` addresses. Cluster is detected. */
  readonly url: string;
  readonly log: Log;
  readonly durability: DurabilityLevel;
  readonly durabilityAsserted: boolean;
  /** Ends the wait for the first connection. */
  readonly signal: AbortSignal;
  /** How long a write may take before its outcome counts as unknown; at most 4,000 (the default). */
  readonly writeTimeoutMs?: number;
  /** What may be queued and under way, in bytes, before publishing is refused. Default 64 MiB. */
  readonly maxBytesInFlight?: number;
  readonly checkEveryMs?: number;
}

/** What `/readyz` says of Redis. */
export interface RedisState {
  /** True when events can be published. */
  readonly ready: boolean;
  /** Why not; one sentence each, for the operator. */
  readonly problems: readonly string[];
  /** The level that holds for acknowledged events. */
  readonly durability: DurabilityLevel | "unknown";
  readonly version: string | undefined;
  readonly cluster: boolean;
  /** Of `maxmemory`, of the fullest master; undefined where no limit is set or it cannot be read. */
  readonly memoryUsedFraction: number | undefined;
  /** From 85 % on. */
  readonly memoryAlarm: boolean;
}

/** One Redis or one Cluster. Reconnects by itself for ever. */
export interface RedisBus extends AsyncDisposable {
  readonly isCluster: boolean;
  /**
   * One command on the general connection; the reply in RESP2's shapes.
   *
   * @throws UnavailableError when Redis is away, loading, read-only, full or slow.
   */
  call(command: string, args: readonly (string | number | Buffer)[]): Promise<unknown>;
  /** As `call`, with strings of the reply as Buffers. */
  callBuffer(command: string, args: readonly (string | number | Buffer)[]): Promise<unknown>;
  state(): RedisState;
}

/**
 * Connects, and waits for as long as Redis is away until `signal` aborts.
 *
 * @throws RedisUnfitError on a Redis that is too old, evicts, or is less durable than asked for.
 */
export declare function openRedis(options: OpenRedisOptions): Promise<RedisBus>;
