import type { SupervisedServer } from "../lib/supervise.ts";
import type { Log } from "../log.ts";

/** Connection options as `pg` takes them: a unix socket in a private folder, no password. */
export interface PostgresSocket {
  readonly host: string;
  readonly user: string;
  readonly database: string;
}

export interface LocalPostgres extends SupervisedServer {
  readonly connection: PostgresSocket;
}

/**
 * Starts, or takes back, the PostgreSQL under `<dataDir>/postgres`; resolves when it answers. The data lock must be held.
 * Throws an Error whose message says what to do.
 */
export declare function startLocalPostgres(options: {
  readonly dataDir: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<LocalPostgres>;
