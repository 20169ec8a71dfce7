import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

/** A redis-server of a test's own; ended by its process id. */
export interface RedisServer extends AsyncDisposable {
  /** As `openRedis` takes it. */
  readonly url: string;
  /** For looking behind the code under test. */
  readonly client: Redis;
  readonly port: number;
  readonly socketPath: string;
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** Ends it at once and starts it on what is left on disk. */
  restart(): Promise<void>;
}

/** Starts a redis-server on a free port of the loopback, keeping nothing on disk unless told to; `env` beside the tests' own. */
export async function startRedis(
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-redis-"));
  const port = await freePort();
  const socketPath = join(dir, "redis.sock");
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--unixsocket", socketPath, "--dir", dir];
  // A replica is served at once, not when others may have come.
  args.push("--save", "", "--repl-diskless-sync-delay", "0", ...options);
  let server = await spawnRedis(args, env);
  const client = await openClient(socketPath);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    socketPath,
    get pid() {
      return server.pid ?? 0;
    },
    client,
    signal: (signal) => void server.kill(signal),
    async restart() {
      await end(server);
      server = await spawnRedis(args, env);
    },
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await end(server);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export interface RedisCluster extends AsyncDisposable {
  readonly url: string;
  /** For looking behind the code under test; connects at its first command. */
  readonly client: Cluster;
  readonly masters: readonly RedisServer[];
}

/** Starts a Cluster of three masters on the loopback. */
export async function startRedisCluster(options: readonly string[] = []): Promise<RedisCluster> {
  const masters = await Promise.all(
    [0, 1, 2].map(() =>
      startRedis(["--cluster-enabled", "yes", "--cluster-node-timeout", "10000", ...options]),
    ),
  );
  const last = 16_384;
  for (const [i, { client }] of masters.entries()) {
    const from = Math.floor((last * i) / masters.length);
    const to = Math.floor((last * (i + 1)) / masters.length) - 1;
    await client.call("cluster", "addslotsrange", from, to);
    await client.call("cluster", "set-config-epoch", i + 1);
  }
  const [first, ...others] = masters;
  if (first === undefined) throw new Error("no masters");
  for (const { port } of others) await first.client.call("cluster", "meet", "127.0.0.1", port);
  await until(
    async () => {
      for (const { client } of masters) {
        const info = String(await client.call("cluster", "info"));
        if (!info.includes("cluster_state:ok") || !info.includes("cluster_known_nodes:3")) return false;
      }
      return true;
    },
    { everyMs: 20 },
  );
  const client = new Cluster(
    masters.map(({ port }) => ({ host: "127.0.0.1", port })),
    { redisOptions: { protocol: 2 }, lazyConnect: true },
  );
  // Until then it knows no nodes, and what is asked of each of them is asked of none.
  await client.connect();
  return {
    url: masters.map(({ url }) => url).join(","),
    client,
    masters,
    async [Symbol.asyncDispose]() {
      client.disconnect();
      await Promise.all(masters.map((master) => master[Symbol.asyncDispose]()));
    },
  };
}

/** A client on a server's socket, for looking behind the code under test. */
export async function openClient(socketPath: string, database = 0): Promise<Redis> {
  const client = new Redis({
    path: socketPath,
    db: database,
    protocol: 2,
    maxRetriesPerRequest: null,
  });
  client.on("error", () => {});
  await client.ping();
  return client;
}

async function spawnRedis(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const server = spawn("redis-server", args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  let log = "";
  server.stdout.setEncoding("utf8").on("data", (text: string) => {
    log += log.length < 100_000 ? text : "";
  });
  await until(() => {
    if (server.exitCode !== null) throw new Error(`redis-server has ended: ${log}`);
    return log.includes("Ready to accept connections") || log.includes("Loading");
  });
  return server;
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  server.kill("SIGCONT");
  server.kill("SIGKILL");
  await once(server, "exit");
}
