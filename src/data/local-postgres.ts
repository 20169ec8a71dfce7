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

/** Connection options as `pg` takes them: a unix socket in a private folder, no password. */
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
  /** Real, absolute path, owned by this process (`acquireDataLock`). */
  readonly dataDir: string;
  readonly log: Log;
  /** Ends the start only; the running server is ended by disposing it. */
  readonly signal: AbortSignal;
  /** Overrides the choice that fits this machine. */
  readonly user?: ServerUser;
}

const DATABASE = "inlet";
const PORT = 5432;
/** SQLSTATE while it starts, recovers or shuts down. */
const CANNOT_CONNECT_NOW = "57P03";
const SOCKET_NAME = `.s.PGSQL.${PORT}`;

/** Small memory, one machine, no network; durability (fsync, synchronous_commit, full_page_writes) as PostgreSQL ships. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "",
  port: String(PORT),
  shared_buffers: "32MB",
  work_mem: "4MB",
  maintenance_work_mem: "32MB",
  max_connections: "100",
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
 * Starts, or takes back, the PostgreSQL under `<dataDir>/postgres`; resolves when it answers and its database is there.
 * The data lock must be held. Throws an Error whose message says what to do.
 */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  const { dataDir, log, signal } = options;
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
  const settings = { ...SETTINGS, unix_socket_directories: `"${socketDir.replaceAll('"', '""')}"` };
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
      // Fast shutdown; then immediate, which is a crash that the next start recovers from (postgres(1)).
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

/** The PostgreSQL that a running gateway keeps under the data directory (its real path); undefined: there is none. */
export async function findLocalPostgres(dataDir: string): Promise<PostgresSocket | undefined> {
  const clusterDir = join(dataDir, "postgres");
  if ((await findPostmaster(clusterDir)) === undefined) return undefined;
  // Its lines: process id, data directory, start time, port, folder of the socket (PostgreSQL, miscadmin.h).
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
