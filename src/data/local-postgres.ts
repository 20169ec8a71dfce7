import { existsSync, mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { serverEnvironment } from "../lib/servers/server-process.ts";
import { makeSocketDir, removeSocketDir } from "../lib/servers/socket-dir.ts";
import { type SupervisedServer, superviseServer } from "../lib/servers/supervise.ts";
import type { Log } from "../log.ts";
import { findPostgresBinaries } from "./local-postgres/binaries.ts";
import { checkClusterMajor, initCluster, SUPERUSER } from "./local-postgres/cluster-dir.ts";
import { findPostmaster, removeStaleLocks } from "./local-postgres/postmaster.ts";
import { callAs, chooseServerUser, ownDirectory, type ServerUser } from "./local-postgres/server-user.ts";

/** Connection options for `pg`. No password is needed, because the Unix socket is in a private directory. */
export interface PostgresSocket {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly ssl: false;
}

export interface LocalPostgres extends SupervisedServer {
  readonly connection: PostgresSocket;
}

export interface LocalPostgresOptions {
  /** Absolute path without symbolic links. The caller must have locked the directory with `acquireDataLock`. */
  readonly dataDir: string;
  readonly log: Log;
  /** Aborts the start. It does not stop a running server: dispose of the server instead. */
  readonly signal: AbortSignal;
  /** System user that runs the server. Detected by default. */
  readonly user?: ServerUser;
  /** Maximum number of client connections. Default: 100. */
  readonly maxConnections?: number;
}

const DATABASE = "inlet";
const PORT = 5432;
/** SQLSTATE of a server that is starting up, recovering or shutting down. */
const CANNOT_CONNECT_NOW = "57P03";
const SOCKET_NAME = `.s.PGSQL.${PORT}`;
const MAX_CONNECTIONS = 100;

/**
 * PostgreSQL settings for a server with little memory and only local clients. The durability settings (fsync, synchronous_commit,
 * full_page_writes) keep their defaults.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "",
  port: String(PORT),
  shared_buffers: "32MB",
  work_mem: "4MB",
  maintenance_work_mem: "32MB",
  max_wal_size: "256MB",
  min_wal_size: "48MB",
  io_method: "sync",
  jit: "off",
  huge_pages: "off",
  timezone: "UTC",
  log_timezone: "UTC",
  log_checkpoints: "off",
  log_min_messages: "warning",
  cluster_name: "inlet",
};

/**
 * Starts the embedded PostgreSQL in `<dataDir>/postgres`, or takes over a server that already runs there. Resolves when the server
 * accepts connections and has its database.
 *
 * The caller must hold the data lock.
 *
 * @throws Error whose message says how to fix the problem
 */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  const { dataDir, log, signal, maxConnections = MAX_CONNECTIONS } = options;
  const clusterDir = join(dataDir, "postgres");
  checkClusterMajor(clusterDir);
  const packaged = findPostgresBinaries();
  const { user, binaries } = options.user
    ? { user: options.user, binaries: packaged }
    : await chooseServerUser({ binaries: packaged, dataDir, clusterDir });
  const env = serverEnvironment();
  if (!existsSync(clusterDir)) await initCluster({ clusterDir, binaries, user, env, signal });

  const owner = user.kind === "other" ? { uid: user.uid, gid: user.gid } : undefined;
  const socketDir = makeSocketDir(dataDir, SOCKET_NAME, owner);
  mkdirSync(join(dataDir, "log"), { recursive: true, mode: 0o700 });
  const connection = {
    host: socketDir,
    port: PORT,
    user: SUPERUSER,
    database: DATABASE,
    ssl: false,
  } as const;
  const settings = {
    ...SETTINGS,
    max_connections: String(maxConnections),
    unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"`,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = await superviseServer(
    {
      name: "postgres",
      command: {
        ...callAs(user, binaries.postgres, ["-D", ownDirectory(user, clusterDir), ...args]),
        cwd: clusterDir,
        env,
      },
      logFile: join(dataDir, "log", "postgres.log"),
      async findOrphan() {
        const pid = await findPostmaster(clusterDir);
        if (pid === undefined) await removeStaleLocks(clusterDir, join(socketDir, SOCKET_NAME));
        return pid;
      },
      probe: () => probe({ ...connection, database: "postgres" }),
      // Try a fast shutdown before an immediate one, because the next start after an immediate shutdown recovers as after a crash
      // (postgres(1)).
      stopSignals: ["SIGINT", "SIGQUIT"],
      stopGraceMs: 20_000,
      maxSilenceMs: 60_000,
    },
    { log, signal },
  );
  try {
    await createDatabase(connection);
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
  return {
    connection,
    get status() {
      return server.status;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      removeSocketDir(socketDir);
    },
  };
}

/** Finds the embedded PostgreSQL of a running gateway. @param dataDir absolute path without symbolic links */
export async function findLocalPostgres(dataDir: string): Promise<PostgresSocket | undefined> {
  const clusterDir = join(dataDir, "postgres");
  if ((await findPostmaster(clusterDir)) === undefined) return undefined;
  // Lines of `postmaster.pid`: process id, data directory, start time, port, socket directory (PostgreSQL, miscadmin.h).
  const [, , , port, host] = (await readFile(join(clusterDir, "postmaster.pid"), "utf8")).split("\n");
  return host ? { host, port: Number(port), user: SUPERUSER, database: DATABASE, ssl: false } : undefined;
}

async function probe(connection: PostgresSocket): Promise<"ready" | "busy" | "silent"> {
  try {
    await withClient({ ...connection, connectionTimeoutMillis: 2_000, query_timeout: 2_000 }, (client) =>
      client.query("SELECT 1"),
    );
    return "ready";
  } catch (error) {
    return (error as { code?: string }).code === CANNOT_CONNECT_NOW ? "busy" : "silent";
  }
}

const createDatabase = ({ database, ...connection }: PostgresSocket): Promise<void> =>
  withClient({ ...connection, database: "postgres", connectionTimeoutMillis: 10_000 }, async (client) => {
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [database]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(database)}`);
  });

async function withClient<T>(config: pg.ClientConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(config);
  client.on("error", () => {});
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}
