import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster, Redis } from "ioredis";
import { startLocalPostgres } from "../../src/data/local-postgres.ts";
import { createLog } from "../../src/log.ts";
import { type RedisServer, startRedis, startRedisCluster } from "./redis.ts";

/** Enough for three gateways of four processes, each with ten connections in use and one for changes, while one is replaced. */
const POSTGRES_CONNECTIONS = 300;
/** Redis options that prevent any loss of acknowledged data. */
const DURABLE = ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"];

/** Stores for several gateways: a PostgreSQL, and either one Redis or a Cluster of three masters. */
export interface SharedStores extends AsyncDisposable {
  readonly dir: string;
  /** The Redis server, or the three masters of the Cluster. */
  readonly servers: readonly RedisServer[];
  /** For inspecting stored data directly. */
  readonly client: Redis | Cluster;
  /** Settings of a gateway on these stores. */
  readonly env: Readonly<Record<string, string>>;
}

/** Starts the stores. `INLET_TEST_REDIS=cluster` uses the Cluster. `more` adds options to a single Redis, after the durable ones. */
export async function startSharedStores(
  more: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<SharedStores> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "inlet-shared-"));
  starting.defer(() => rm(dir, { recursive: true, force: true }));
  const dataDir = join(dir, "own");
  await mkdir(dataDir, { mode: 0o700 });
  const options = { dataDir, log: createLog({ level: "silent" }), maxConnections: POSTGRES_CONNECTIONS };
  const postgres = starting.use(
    await startLocalPostgres({ ...options, signal: new AbortController().signal }),
  );
  const redis =
    process.env.INLET_TEST_REDIS === "cluster"
      ? starting.use(await startRedisCluster(DURABLE))
      : starting.use(await startRedis([...DURABLE, ...more], env));
  const servers = "masters" in redis ? redis.masters : [redis];

  const owned = starting.move();
  const { host, user, database } = postgres.connection;
  return {
    dir,
    servers,
    client: redis.client,
    env: {
      DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
      REDIS_URL: redis.url,
      INLET_MASTER_KEY: randomBytes(32).toString("base64"),
      INLET_DATA_DIR: join(dir, "data"),
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
