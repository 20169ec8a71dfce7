import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { createLog } from "../../src/log.ts";

/** What several gateways share: a PostgreSQL of Inlet's own make, and a redis-server that can be killed and started. */
export interface SharedStores extends AsyncDisposable {
  readonly dir: string;
  readonly redisSocket: string;
  /** SIGKILL, and a start on what is left on disk; resolves when it answers again. */
  readonly killRedis: () => Promise<void>;
  /** Of a gateway on these stores, but for its `REDIS_URL`. */
  readonly env: Readonly<Record<string, string>>;
}

export async function startSharedStores(): Promise<SharedStores> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "inlet-shared-"));
  starting.defer(() => rm(dir, { recursive: true, force: true }));
  const log = createLog({ level: "silent" });
  const signal = new AbortController().signal;
  const postgres = starting.use(await startLocalPostgres({ dataDir: join(dir, "postgres"), log, signal }));
  const redisDir = join(dir, "redis");
  await mkdir(redisDir);
  const redisSocket = join(redisDir, "redis.sock");
  let redis = await startRedis(redisDir, redisSocket);
  starting.defer(() => kill(redis));

  const owned = starting.move();
  const { host, user, database } = postgres.connection;
  return {
    dir,
    redisSocket,
    async killRedis() {
      await kill(redis);
      redis = await startRedis(redisDir, redisSocket);
    },
    env: {
      DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
      INLET_MASTER_KEY: randomBytes(32).toString("base64"),
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function startRedis(dir: string, socket: string): Promise<ChildProcess> {
  const settings = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--save",
    "",
    "--maxmemory-policy",
    "noeviction",
  ];
  const child = spawn("redis-server", ["--port", "0", "--unixsocket", socket, "--dir", dir, ...settings], {
    stdio: "ignore",
  });
  const client = new Redis({ path: socket, retryStrategy: () => 20, maxRetriesPerRequest: null });
  client.on("error", () => {});
  await client.ping();
  client.disconnect();
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}
