import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { type PostgresSocket, startLocalPostgres } from "../../src/data/local-postgres.ts";
import { migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";
import type { RedisDatabase } from "./broker.ts";
import { type RedisServer, startRedis } from "./redis.ts";
import { openRunFolders } from "./run-folders.ts";

/** The migrated database. Each test's database is a copy of it. */
export const TEMPLATE = "inlet_template";
/** More databases than tests ever use at the same time. */
const REDIS_DATABASES = 512;
/** More connections than the gateways of all workers ever open at the same time. */
const POSTGRES_CONNECTIONS = 1_000;

/**
 * Starts one PostgreSQL and one Redis for a whole run, each at the first request. A broker assigns them to tests.
 * `GET /postgres` returns a connection, `GET /redis` an unused database, and `DELETE /redis/<n>` releases it.
 * All tests keep their temporary files in a folder of the run.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folders = await openRunFolders();
  process.env.TMPDIR = folders.temporary;
  const running = new AsyncDisposableStack();
  let postgres: Promise<PostgresServer> | undefined;
  let redis: Promise<RedisServer> | undefined;
  const free = Array.from({ length: REDIS_DATABASES }, (_, number) => number);

  async function answer({ method, url = "" }: IncomingMessage): Promise<unknown> {
    if (url === "/postgres") {
      postgres ??= startPostgres(folders.fast).then((server) => running.use(server));
      return (await postgres).connection;
    }
    if (method === "DELETE") return free.push(Number(url.slice("/redis/".length)));
    redis ??= startRedis(["--databases", String(REDIS_DATABASES)]).then((server) => running.use(server));
    const { socketPath } = await redis;
    const database = free.shift();
    if (database === undefined) throw new Error(`all ${REDIS_DATABASES} databases of Redis are in use`);
    return { socketPath, database } satisfies RedisDatabase;
  }

  const broker = createServer((request, response) => {
    answer(request).then(
      (body) => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  broker.listen(0, "127.0.0.1");
  await once(broker, "listening");
  project.provide("serverBroker", (broker.address() as AddressInfo).port);
  return async () => {
    broker.close();
    broker.closeAllConnections();
    await Promise.allSettled([postgres, redis]);
    await running.disposeAsync();
  };
}

interface PostgresServer extends AsyncDisposable {
  /** A connection to a database that no test uses. */
  readonly connection: PostgresSocket;
}

const log = createLog({ level: "silent" });

async function startPostgres(folder: string): Promise<PostgresServer> {
  await using starting = new AsyncDisposableStack();
  // Tests copy the template database, which takes a twentieth of the time in memory.
  const dataDir = await mkdtemp(join(folder, "inlet-pg-"));
  starting.defer(() => rm(dataDir, { recursive: true, force: true }));
  const { signal } = new AbortController();
  const maxConnections = POSTGRES_CONNECTIONS;
  const { connection } = starting.use(await startLocalPostgres({ dataDir, log, signal, maxConnections }));
  await prepareTemplate(connection);
  const owned = starting.move();
  return { connection, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Settings that are turned off: the data need not survive the run and no test kills this server, so durability only costs time. */
const DURABILITY_SETTINGS = ["fsync", "synchronous_commit", "full_page_writes", "autovacuum"];

async function prepareTemplate(connection: PostgresSocket): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    for (const setting of DURABILITY_SETTINGS) await client.query(`ALTER SYSTEM SET ${setting} = off`);
    await client.query("SELECT pg_reload_conf()");
    await client.query(`CREATE DATABASE ${TEMPLATE}`);
  } finally {
    await client.end();
  }
  await migrate({ connection: { ...connection, database: TEMPLATE }, log });
}
