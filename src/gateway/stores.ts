import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { findLocalRedis, type LocalRedis, startLocalRedis } from "../bus/connection/local-redis.ts";
import type { Config } from "../config/schema.ts";
import type { DatabaseConnection } from "../data/database.ts";
import {
  findLocalPostgres,
  type LocalPostgres,
  type PostgresSocket,
  startLocalPostgres,
} from "../data/local-postgres.ts";
import { acquireDataLock, type DataLock } from "../lib/servers/data-lock.ts";
import { type DiskSpace, readDiskSpace } from "../lib/servers/disk-space.ts";
import type { Log } from "../log.ts";
import type { Machine } from "./machine.ts";
import { loadMasterKeys, type MasterKeys } from "./master-keys.ts";

/** Connections to PostgreSQL and Redis. Embedded servers stop on disposal. */
export interface Stores extends AsyncDisposable {
  readonly database: DatabaseConnection;
  readonly redisUrl: string;
  readonly keys: MasterKeys;
  /** Returns the problems of the embedded servers. The list is empty while all servers run. */
  readonly problems: () => readonly string[];
  /** Returns the space on the disk of the embedded servers. `undefined` if both servers are external. */
  readonly diskSpace: () => DiskSpace | undefined;
}

/** Thrown when another running gateway uses the data directory. */
export class DataDirInUseError extends Error {
  override readonly name = "DataDirInUseError";
}

/**
 * Locks the data directory until disposal. Not needed without embedded servers, or if the supervisor has locked it.
 *
 * @throws DataDirInUseError
 */
export function claimDataDir(config: Config, machine?: Pick<Machine, "dataDir">): DataLock {
  const { dataDir } = machine ?? config;
  return ownsServers(config) && machine === undefined
    ? lockDataDir(config)
    : { dataDir, [Symbol.dispose]() {} };
}

/** Returns true if the settings name no external server for PostgreSQL or for Redis. */
export const ownsServers = ({ databaseUrl, redisUrls }: Pick<Config, "databaseUrl" | "redisUrls">): boolean =>
  databaseUrl === undefined || redisUrls.length === 0;

/** Uses the servers and the master key of the supervisor. The supervisor stops its servers itself. */
export async function useMachineStores(config: Config, { dataDir, stores }: Machine): Promise<Stores> {
  const { database, redisUrl, areEmbedded, isNewKey, problems } = stores;
  return {
    database,
    redisUrl,
    keys: { ...(await loadMasterKeys(config, dataDir)), isNew: isNewKey },
    problems,
    diskSpace: () => (areEmbedded ? readDiskSpace(dataDir) : undefined),
    async [Symbol.asyncDispose]() {},
  };
}

/**
 * Connects to PostgreSQL and Redis. If the settings name no server for one of them, starts an embedded server.
 *
 * @param options.dataDir the data directory, already locked by the caller
 * @throws Error that suggests a fix, if an embedded server does not start
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
  // Stops a server whose counterpart did not start.
  if (postgres.status === "fulfilled") opening.use(postgres.value);
  if (redis.status === "fulfilled") opening.use(redis.value);
  if (postgres.status === "rejected") throw postgres.reason;
  if (redis.status === "rejected") throw redis.reason;

  // An external database requires that the master key is in the settings, so the data directory is not needed.
  const keys = await loadMasterKeys(config, dataDir);
  const owned = opening.move();
  return {
    database: databaseConnection(databaseUrl, postgres.value),
    redisUrl: redis.value === undefined ? redisUrls.join(",") : socketUrl(redis.value.socketPath),
    keys,
    problems: () => [
      ...problemsOf("the embedded PostgreSQL", postgres.value),
      ...problemsOf("the embedded Redis", redis.value),
    ],
    diskSpace: () => (postgres.value || redis.value ? readDiskSpace(dataDir) : undefined),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/**
 * Opens the database, but not Redis, for CLI commands.
 *
 * @throws DataDirInUseError and the errors of `openStores`
 */
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

/**
 * Opens the database for CLI commands that only write rows, which is safe while a gateway is running.
 *
 * @throws the errors of `openDatabaseStore`
 */
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

export interface EmbeddedStores extends AsyncDisposable {
  readonly postgres: PostgresSocket;
  readonly redis: string;
  /** Whether a running gateway owns the servers. Otherwise the servers were started for this caller and stop on disposal. */
  readonly areRunning: boolean;
}

/**
 * Opens both embedded servers for reading, even while a gateway is running. The master key is not needed.
 *
 * @param options.dataDir real, absolute path of the data directory
 * @throws DataDirInUseError if a restore is using the directory, or if its owner's servers do not respond
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
      throw new DataDirInUseError(`${lock.error.message}; a restore into the directory is still running`);
    const [postgres, redis] = await Promise.all([findLocalPostgres(dataDir), findLocalRedis(dataDir)]);
    if (postgres && redis) return { postgres, redis, areRunning: true, async [Symbol.asyncDispose]() {} };
    throw new DataDirInUseError(
      `${lock.error.message}; its PostgreSQL and Redis do not respond, so try again if it is just starting`,
    );
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

/** Name of a marker file in the data directory, which exists until a restore has completed. */
export const UNFINISHED_RESTORE = "restore.unfinished";

/** @throws DataDirInUseError */
export function lockDataDir({ dataDir }: Pick<Config, "dataDir">): DataLock {
  const lock = tryLock(dataDir);
  if (!lock.ok) {
    const suggestion =
      "stop that gateway, or set INLET_DATA_DIR and INLET_PORT to another directory and port";
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

/** Throws an error if a restore did not complete, because the data directory is then only partly restored. */
function rejectUnfinishedRestore(dataDir: string): void {
  if (!existsSync(join(dataDir, UNFINISHED_RESTORE))) return;
  throw new Error(
    `a restore into ${dataDir} was interrupted, so the directory holds only a part of the backup: run \`inlet restore\` again, or remove the directory`,
  );
}

function tryLock(dataDir: string): ReturnType<typeof acquireDataLock> {
  try {
    return acquireDataLock(dataDir);
  } catch (cause) {
    const suggestion =
      "it must be a directory of the user who starts Inlet; set INLET_DATA_DIR to use another one";
    throw new Error(`the data directory ${dataDir} cannot be used: ${suggestion}`, { cause });
  }
}

function databaseConnection(url: string | undefined, own: LocalPostgres | undefined): DatabaseConnection {
  if (own !== undefined) return own.connection;
  if (url === undefined) throw new Error("neither an embedded nor an external database is available");
  return { url };
}

/** Returns the URL of a Unix socket. Encodes the path, because directory names may contain special characters. */
const socketUrl = (path: string): string => `unix://${path.split("/").map(encodeURIComponent).join("/")}`;

function problemsOf(name: string, own: LocalPostgres | LocalRedis | undefined): readonly string[] {
  if (own === undefined || own.status.state === "ready") return [];
  const { status } = own;
  return [
    status.state === "restarting"
      ? `${name} exited (${status.reason}) and is being restarted`
      : `${name} is ${status.state}`,
  ];
}
