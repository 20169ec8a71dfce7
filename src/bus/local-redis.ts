import type { SupervisedServer } from "../lib/supervise.ts";
import type { Log } from "../log.ts";

export interface LocalRedis extends SupervisedServer {
  /** Absolute path of its only door, for ioredis' `path` and `redis-cli -s`. */
  readonly socketPath: string;
}

/**
 * Starts, or takes back, the redis-server under `<dataDir>/redis`; resolves when it answers and has loaded. The data lock
 * must be held. Throws an Error whose message says what to do.
 */
export declare function startLocalRedis(options: {
  readonly dataDir: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<LocalRedis>;
