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
import { askOnce } from "./general-connection.ts";

const run = promisify(execFile);

export interface LocalRedis extends SupervisedServer {
  /** Absolute path of its only door, for ioredis' `path` and `redis-cli -s`. */
  readonly socketPath: string;
}

export interface LocalRedisOptions {
  /** Real, absolute path, owned by this process (`acquireDataLock`). */
  readonly dataDir: string;
  readonly log: Log;
  /** Ends the start only; the running server is ended by disposing it. */
  readonly signal: AbortSignal;
  /** Bytes; half of what this machine or its control group has unless given. */
  readonly maxMemoryBytes?: number;
  /** How long it may not answer before it counts as hung; 20 s unless given. */
  readonly maxSilenceMs?: number;
  /** Begins with what `redis/<RDB_FILE>` holds, and keeps nothing until it is told `CONFIG SET appendonly yes`. */
  readonly fromRdb?: boolean;
}

/** In `<dataDir>/redis`, while a restore is under way. */
export const RDB_FILE = "restore.rdb";

const LOOK_TIMEOUT_MS = 2_000;
const SOCKET_NAME = "redis.sock";
const CONFIG_FILE = "redis.conf";
/** Scripts that declare their flags (`#!lua flags=…`) came with 7.0. */
const MIN_MAJOR = 7;
/** Valkey is the same server under the name that some systems ship. */
const PROGRAMS = ["redis-server", "valkey-server"];

/**
 * Starts, or takes back, the redis-server under `<dataDir>/redis`; resolves when it answers and has loaded. The data
 * lock must be held. Throws an Error whose message says what to do.
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
      findOrphan: () => findRunning(redisDir, socketPath),
      probe: async (pid) => {
        const seen = await lookAt(socketPath);
        if (seen?.pid !== pid) return "silent";
        return seen.loading ? "busy" : "ready";
      },
      // On SIGTERM Redis completes the append-only file.
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

/** The socket of the Redis that a running gateway keeps under the data directory (its real path); undefined: there is none. */
export async function findLocalRedis(dataDir: string): Promise<string | undefined> {
  const socketPath = await configuredSocket(dataDir);
  if (socketPath === undefined) return undefined;
  const seen = await lookAt(socketPath);
  return seen?.dir === join(dataDir, "redis") && !seen.loading ? socketPath : undefined;
}

/** Whether a Redis works under the data directory (its real path), also where it does not answer (yet). */
export async function hasLocalRedis(dataDir: string): Promise<boolean> {
  const socketPath = await configuredSocket(dataDir);
  return socketPath !== undefined && (await findRunning(join(dataDir, "redis"), socketPath)) !== undefined;
}

async function configuredSocket(dataDir: string): Promise<string | undefined> {
  const config = await readFile(join(dataDir, CONFIG_FILE), "utf8").catch(() => "");
  const quoted = /^unixsocket "(.*)"$/m.exec(config)?.[1];
  return quoted?.replaceAll(/\\(.)/g, "$1");
}

/** The redis-server of this machine. @throws an Error that says what to do */
export async function findRedisProgram(): Promise<string> {
  for (const program of PROGRAMS) {
    const version = await run(program, ["--version"]).catch(() => undefined);
    const major = Number(/ v=(\d+)\./.exec(version?.stdout ?? "")?.[1]);
    if (major >= MIN_MAJOR) return program;
    if (major)
      throw new Error(
        `${program} on the PATH is of version ${major}; Inlet needs ${MIN_MAJOR} or later (or REDIS_URL)`,
      );
  }
  throw new Error(
    `redis-server is not on the PATH. Install it with \`${installLine()}\`, or set REDIS_URL to a server of your own.`,
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
    "# Written by Inlet at each start: changes here are lost.",
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
    // A backup reads all through the socket: it waits for nobody who may want to read it too, and writes no file.
    "repl-diskless-sync yes",
    "repl-diskless-sync-delay 0",
    "lazyfree-lazy-expire yes",
    "hash-max-listpack-entries 128",
    // Six events of the usual size fill a node of the default 4 kB badly: 76 bytes of each are lost.
    "stream-node-max-bytes 8192",
  ].join("\n")}\n`;
}

/** `constrainedMemory` is the control group's limit: 0 or beyond the machine's memory where there is none. */
function availableMemoryBytes(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Found by its socket, or by its pid file where it does not answer: two servers would spoil the append-only file. */
async function findRunning(redisDir: string, socketPath: string): Promise<number | undefined> {
  const seen = await lookAt(socketPath);
  if (seen && seen.dir === redisDir) return seen.pid;
  const pid = Number.parseInt(await readFile(join(redisDir, "redis.pid"), "utf8").catch(() => ""), 10);
  if (!(pid > 1) || (await processIncarnation(pid)) === undefined) return undefined;
  return (await worksIn(pid, redisDir)) ? pid : undefined;
}

async function lookAt(socketPath: string) {
  return askOnce({ path: socketPath }, LOOK_TIMEOUT_MS, async (client) => {
    const [info, directory] = await Promise.all([client.info(), client.config("GET", "dir")]);
    const field = (name: string) => new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1];
    const [, dir] = directory as readonly string[];
    return { pid: Number(field("process_id")), dir, loading: field("loading") !== "0" };
  }).catch(() => undefined);
}
