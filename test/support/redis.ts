import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

/** A redis-server for one test. Disposal ends it by process id. */
export interface RedisServer extends AsyncDisposable {
  /** The address, in the form that `openRedis` accepts. */
  readonly url: string;
  /** For inspecting Redis directly. */
  readonly client: Redis;
  readonly port: number;
  readonly socketPath: string;
  readonly pid: number;
  signal(signal: NodeJS.Signals): void;
  /** Kills the server and starts it again with the data on disk. */
  restart(): Promise<void>;
}

/** Starts a redis-server on a free loopback port, without persistence by default. `env` is added to the test's environment. */
export async function startRedis(
  options: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-redis-"));
  const port = await freePort();
  const socketPath = join(dir, "redis.sock");
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--unixsocket", socketPath, "--dir", dir];
  // Starts the sync of a replica immediately instead of waiting for further replicas.
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
  /** For inspecting Redis directly. Connected before it is returned. */
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
  // Before it connects, the client knows no nodes, so a command meant for each node would reach no server.
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

/** Opens a client on a server's socket, for inspecting Redis directly. */
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
