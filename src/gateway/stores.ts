import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { findLocalRedis, type LocalRedis, startLocalRedis } from "../bus/connection/local-redis.ts";
import type { Config } from "../config.ts";
import type { DatabaseConnection } from "../data/database.ts";
import {
  findLocalPostgres,
  type LocalPostgres,
  type PostgresSocket,
  startLocalPostgres,
} from "../data/local-postgres.ts";
import { acquireDataLock, type DataLock } from "../lib/servers/data-lock.ts";
import type { Log } from "../log.ts";
import { loadMasterKeys, type MasterKeys } from "./master-keys.ts";

/** The PostgreSQL and the Redis of the gateway: given by the settings, or its own, which end with it. */
export interface Stores extends AsyncDisposable {
  readonly database: DatabaseConnection;
  /** As `openRedis` takes it. */
  readonly redisUrl: string;
  readonly keys: MasterKeys;
  /** Of its own servers; empty when they run. */
  readonly problems: () => readonly string[];
}

/** The data directory belongs to a running gateway. */
export class DataDirInUseError extends Error {
  override readonly name = "DataDirInUseError";
}

/** The data directory: owned, until disposal, by a gateway that keeps servers of its own there. @throws DataDirInUseError */
export function claimDataDir(config: Config): DataLock {
  const { databaseUrl, redisUrls, dataDir } = config;
  const ownsServers = databaseUrl === undefined || redisUrls.length === 0;
  return ownsServers ? lockDataDir(config) : { dataDir, [Symbol.dispose]() {} };
}

/**
 * @param options.dataDir claimed
 * @throws an Error that says what to do, when a server of its own does not start
 */
export async function openStores(
  config: Config,
  { dataDir, log, signal }: { readonly dataDir: string; readonly log: Log; readonly signal: AbortSignal },
): Promise<Stores> {
  await using opening = new AsyncDisposableStack();
  const { databaseUrl, redisUrls } = config;
  const starting = { dataDir, log, signal };
  const [postgres, redis] = await Promise.allSettled([
    databaseUrl === undefined ? startLocalPostgres(starting) : undefined,
    redisUrls.length === 0 ? startLocalRedis(starting) : undefined,
  ]);
  // If only one has started it must be stopped again.
  if (postgres.status === "fulfilled") opening.use(postgres.value);
  if (redis.status === "fulfilled") opening.use(redis.value);
  if (postgres.status === "rejected") throw postgres.reason;
  if (redis.status === "rejected") throw redis.reason;

  // With a database of others the settings have demanded a key.
  const keys = await loadMasterKeys(config, dataDir);
  const owned = opening.move();
  return {
    database: databaseConnection(databaseUrl, postgres.value),
    redisUrl: redis.value === undefined ? redisUrls.join(",") : socketUrl(redis.value.socketPath),
    keys,
    problems: () => [
      ...problemsOf("the own PostgreSQL", postgres.value),
      ...problemsOf("the own Redis", redis.value),
    ],
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The database without Redis, for commands. @throws DataDirInUseError, and as `openStores` does */
export async function openDatabaseStore(
  config: Config,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Promise<Pick<Stores, "database" | "keys"> & AsyncDisposable> {
  await using opening = new AsyncDisposableStack();
  const { databaseUrl } = config;
  const dataDir = databaseUrl === undefined ? opening.use(lockDataDir(config)).dataDir : config.dataDir;
  const postgres =
    databaseUrl === undefined ? opening.use(await startLocalPostgres({ dataDir, log, signal })) : undefined;
  const keys = await loadMasterKeys(config, dataDir);
  const owned = opening.move();
  return {
    database: databaseConnection(databaseUrl, postgres),
    keys,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** The same for commands that write rows alone, beside a gateway that runs. @throws as `openDatabaseStore` does */
export async function openDatabaseForCommand(
  config: Config,
  deps: { readonly log: Log; readonly signal: AbortSignal },
): Promise<Pick<Stores, "database"> & AsyncDisposable> {
  try {
    return await openDatabaseStore(config, deps);
  } catch (error) {
    const running =
      error instanceof DataDirInUseError && (await findLocalPostgres(realpathSync(config.dataDir)));
    if (!running) throw error;
    return { database: running, async [Symbol.asyncDispose]() {} };
  }
}

/** The PostgreSQL and the Redis of a data directory. */
export interface EmbeddedStores extends AsyncDisposable {
  readonly postgres: PostgresSocket;
  /** Path of the socket. */
  readonly redis: string;
  /** Of a gateway that runs; else they were started for the caller, and end at disposal. */
  readonly areRunning: boolean;
}

/**
 * Both own servers, for reading, of a gateway that runs or of one that does not. The master key is left alone.
 *
 * @param options.dataDir its real, absolute path
 * @throws DataDirInUseError where a gateway has the directory and its servers do not answer, or a restore has it
 */
export async function openEmbeddedStores(options: {
  readonly dataDir: string;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<EmbeddedStores> {
  const { dataDir } = options;
  await using opening = new AsyncDisposableStack();
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) {
    if (existsSync(join(dataDir, UNFINISHED_RESTORE)))
      throw new DataDirInUseError(`${lock.error.message}: a restore into it has not ended`);
    const [postgres, redis] = await Promise.all([findLocalPostgres(dataDir), findLocalRedis(dataDir)]);
    if (postgres && redis) return { postgres, redis, areRunning: true, async [Symbol.asyncDispose]() {} };
    throw new DataDirInUseError(`${lock.error.message}; its PostgreSQL and its Redis do not answer (yet)`);
  }
  opening.use(lock.value);
  rejectUnfinishedRestore(dataDir);
  const postgres = opening.use(await startLocalPostgres(options));
  const redis = opening.use(await startLocalRedis(options));
  const owned = opening.move();
  return {
    postgres: postgres.connection,
    redis: redis.socketPath,
    areRunning: false,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Stands in a data directory for as long as a restore into it has not ended. */
export const UNFINISHED_RESTORE = "restore.unfinished";

function lockDataDir({ dataDir }: Config): DataLock {
  const lock = tryLock(dataDir);
  if (!lock.ok) {
    const suggestion =
      "end that one, or set INLET_DATA_DIR and INLET_PORT to a folder and a port of this one's own";
    throw new DataDirInUseError(`${lock.error.message}: ${suggestion}`);
  }
  try {
    rejectUnfinishedRestore(lock.value.dataDir);
  } catch (error) {
    lock.value[Symbol.dispose]();
    throw error;
  }
  return lock.value;
}

/** Half of a backup would pass for all of it. */
function rejectUnfinishedRestore(dataDir: string): void {
  if (!existsSync(join(dataDir, UNFINISHED_RESTORE))) return;
  throw new Error(
    `a restore into ${dataDir} was cut off, and it holds a part of the backup only: run \`inlet restore\` with it again, or remove the folder`,
  );
}

function tryLock(dataDir: string): ReturnType<typeof acquireDataLock> {
  try {
    return acquireDataLock(dataDir);
  } catch (cause) {
    const suggestion = "it must be a folder of the user who starts Inlet; INLET_DATA_DIR sets another one";
    throw new Error(`the data directory ${dataDir} cannot be used: ${suggestion}`, { cause });
  }
}

function databaseConnection(url: string | undefined, own: LocalPostgres | undefined): DatabaseConnection {
  if (own !== undefined) return own.connection;
  if (url === undefined) throw new Error("there is neither a database of its own nor one of others");
  return { url };
}

/** A folder's name may hold what means something in a URL. */
const socketUrl = (path: string): string => `unix://${path.split("/").map(encodeURIComponent).join("/")}`;

function problemsOf(name: string, own: LocalPostgres | LocalRedis | undefined): readonly string[] {
  if (own === undefined || own.status.state === "ready") return [];
  const { status } = own;
  return [
    status.state === "restarting"
      ? `${name} ended (${status.reason}) and is restarted`
      : `${name} is ${status.state}`,
  ];
}
