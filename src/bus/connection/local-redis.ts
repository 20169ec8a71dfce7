import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { processIncarnation, worksIn } from "../../lib/servers/process-info.ts";
import { serverEnvironment } from "../../lib/servers/server-process.ts";
import { makeSocketDir, removeSocketDir } from "../../lib/servers/socket-dir.ts";
import { type SupervisedServer, superviseServer } from "../../lib/servers/supervise.ts";
import type { Log } from "../../log.ts";
import { withTemporaryClient } from "./general-connection.ts";
import { parseInfo } from "./node-facts.ts";

const run = promisify(execFile);

export interface LocalRedis extends SupervisedServer {
  /** Absolute path of the server's Unix socket, the only way to connect. Use it as `path` in ioredis or with `redis-cli -s`. */
  readonly socketPath: string;
}

export interface LocalRedisOptions {
  /** Absolute path without symbolic links. The caller must have locked the directory with `acquireDataLock`. */
  readonly dataDir: string;
  readonly log: Log;
  /** Aborts the start. It does not stop a running server: dispose of the server instead. */
  readonly signal: AbortSignal;
  /** Maximum memory in bytes. Defaults to half of the memory of this machine, or of its control group if that is less. */
  readonly maxMemoryBytes?: number;
  /** Time in ms after which a server that does not reply counts as hung. Default: 20 s. */
  readonly maxSilenceMs?: number;
  /**
   * Whether to load `redis/<RDB_FILE>` at the start. The server then persists nothing until the caller sends `CONFIG SET appendonly
   * yes`.
   */
  readonly fromRdb?: boolean;
}

/** RDB file in `<dataDir>/redis` to load. The file exists only while a backup is being restored. */
export const RDB_FILE = "restore.rdb";

const INSPECT_TIMEOUT_MS = 2_000;
const SOCKET_NAME = "redis.sock";
const CONFIG_FILE = "redis.conf";
/** Minimum major version of Redis. Scripts need their flags line (`#!lua flags=…`), which Redis 7.0 introduced. */
const MIN_MAJOR = 7;
/** Program names to try. Some systems ship Valkey, a compatible fork, instead of Redis. */
const PROGRAMS = ["redis-server", "valkey-server"];

/**
 * Starts the embedded Redis in `<dataDir>/redis`, or takes over a server that already runs there. Resolves when the server has
 * loaded its data.
 *
 * The caller must hold the data lock.
 *
 * @throws Error whose message says how to fix the problem
 */
export async function startLocalRedis(options: LocalRedisOptions): Promise<LocalRedis> {
  const { dataDir, log, signal, fromRdb = false } = options;
  const program = await findRedisProgram();
  const redisDir = join(dataDir, "redis");
  mkdirSync(redisDir, { recursive: true, mode: 0o700 });
  mkdirSync(join(dataDir, "log"), { recursive: true, mode: 0o700 });
  const socketDir = makeSocketDir(dataDir, SOCKET_NAME);
  const socketPath = join(socketDir, SOCKET_NAME);
  const configFile = join(dataDir, CONFIG_FILE);
  const maxMemoryBytes = options.maxMemoryBytes ?? Math.floor(availableMemoryBytes() / 2);
  writeFileSync(configFile, renderConfig({ redisDir, socketPath, maxMemoryBytes, fromRdb }), { mode: 0o600 });
  const server = await superviseServer(
    {
      name: "redis",
      command: {
        file: program,
        args: [configFile],
        cwd: redisDir,
        env: serverEnvironment(),
      },
      logFile: join(dataDir, "log", "redis.log"),
      findOrphan: () => findRunningPid(redisDir, socketPath),
      probe: async (pid) => {
        const seen = await inspectServer(socketPath);
        if (seen?.pid !== pid) return "silent";
        return seen.loading ? "busy" : "ready";
      },
      // Stop with SIGTERM, because Redis then flushes its append-only file before it exits.
      stopSignals: ["SIGTERM"],
      stopGraceMs: 30_000,
      maxSilenceMs: options.maxSilenceMs ?? 20_000,
    },
    { log, signal },
  );
  return {
    socketPath,
    get status() {
      return server.status;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      removeSocketDir(socketDir);
    },
  };
}

/**
 * Finds the socket of the embedded Redis. Returns `undefined` if no Redis runs in the directory or if it is still loading its data.
 *
 * `dataDir` must not contain symbolic links.
 */
export async function findLocalRedis(dataDir: string): Promise<string | undefined> {
  const socketPath = await configuredSocket(dataDir);
  if (socketPath === undefined) return undefined;
  const seen = await inspectServer(socketPath);
  return seen?.dir === join(dataDir, "redis") && !seen.loading ? socketPath : undefined;
}

/** Returns true if an embedded Redis runs in the directory, even if it does not reply. `dataDir` must not contain symbolic links. */
export async function hasLocalRedis(dataDir: string): Promise<boolean> {
  const socketPath = await configuredSocket(dataDir);
  return socketPath !== undefined && (await findRunningPid(join(dataDir, "redis"), socketPath)) !== undefined;
}

async function configuredSocket(dataDir: string): Promise<string | undefined> {
  const config = await readFile(join(dataDir, CONFIG_FILE), "utf8").catch(() => "");
  const quoted = /^unixsocket "(.*)"$/m.exec(config)?.[1];
  return quoted?.replaceAll(/\\(.)/g, "$1");
}

/** @throws Error that says how to install Redis */
export async function findRedisProgram(): Promise<string> {
  for (const program of PROGRAMS) {
    const version = await run(program, ["--version"]).catch(() => undefined);
    const major = Number(/ v=(\d+)\./.exec(version?.stdout ?? "")?.[1]);
    if (major >= MIN_MAJOR) return program;
    if (major)
      throw new Error(
        `${program} on the PATH has version ${major}. Install version ${MIN_MAJOR} or later, or set REDIS_URL to another server.`,
      );
  }
  throw new Error(
    `redis-server is not on the PATH. Install it with \`${installLine()}\`, or set REDIS_URL to an existing server.`,
  );
}

const installLine = (): string =>
  process.platform === "darwin" ? "brew install redis" : "sudo sh config/setup.sh";

function renderConfig(options: {
  readonly redisDir: string;
  readonly socketPath: string;
  readonly maxMemoryBytes: number;
  readonly fromRdb: boolean;
}): string {
  const quoted = (path: string) => `"${path.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  return `${[
    "# Written by Inlet at each start. Changes in this file are lost.",
    "port 0",
    `unixsocket ${quoted(options.socketPath)}`,
    "unixsocketperm 700",
    "daemonize no",
    "supervised no",
    `dir ${quoted(options.redisDir)}`,
    `pidfile ${quoted(join(options.redisDir, "redis.pid"))}`,
    'logfile ""',
    "always-show-logo no",
    'save ""',
    ...(options.fromRdb ? ["appendonly no", `dbfilename ${RDB_FILE}`] : ["appendonly yes"]),
    "appendfsync always",
    "aof-load-truncated yes",
    `maxmemory ${options.maxMemoryBytes}`,
    "maxmemory-policy noeviction",
    // Lets backups stream the snapshot over the socket without a file, and without waiting for more replicas.
    "repl-diskless-sync yes",
    "repl-diskless-sync-delay 0",
    "lazyfree-lazy-expire yes",
    "hash-max-listpack-entries 128",
    // With the default node size of 4 kB, each event of typical size would waste about 76 bytes of memory.
    "stream-node-max-bytes 8192",
  ].join("\n")}\n`;
}

/**
 * Returns the memory limit of the control group or of the machine. `constrainedMemory` returns 0 or too much if the control group
 * has no limit.
 */
function availableMemoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/**
 * Finds a running embedded Redis, because a second server would corrupt the append-only file. Reads the pid file if the server does
 * not reply.
 */
async function findRunningPid(redisDir: string, socketPath: string): Promise<number | undefined> {
  const seen = await inspectServer(socketPath);
  if (seen && seen.dir === redisDir) return seen.pid;
  const pid = Number.parseInt(await readFile(join(redisDir, "redis.pid"), "utf8").catch(() => ""), 10);
  if (!(pid > 1) || (await processIncarnation(pid)) === undefined) return undefined;
  return (await worksIn(pid, redisDir)) ? pid : undefined;
}

async function inspectServer(socketPath: string) {
  return withTemporaryClient({ path: socketPath }, INSPECT_TIMEOUT_MS, async (client) => {
    const [info, directory] = await Promise.all([client.info(), client.config("GET", "dir")]);
    const fields = parseInfo(info);
    const [, dir] = directory as readonly string[];
    return { pid: Number(fields.get("process_id")), dir, loading: fields.get("loading") !== "0" };
  }).catch(() => undefined);
}
