import { once } from "node:events";
import { mkdtemp, realpath, rm, statfs } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { type PostgresSocket, startLocalPostgres } from "../../src/data/local-postgres.ts";
import { migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";

declare module "vitest" {
  export interface ProvidedContext {
    postgresBroker: number;
  }
}

export const TEMPLATE = "inlet_template";

/** One PostgreSQL for a whole run of the tests, started when the first of them asks for it on the broker's port. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let server: Promise<Server> | undefined;
  const broker = createServer((_request, response) => {
    server ??= startServer();
    server.then(
      ({ connection }) => response.end(JSON.stringify(connection)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  broker.listen(0, "127.0.0.1");
  await once(broker, "listening");
  project.provide("postgresBroker", (broker.address() as AddressInfo).port);
  return async () => {
    broker.close();
    broker.closeAllConnections();
    const started = await server?.catch(() => undefined);
    await started?.[Symbol.asyncDispose]();
  };
}

interface Server extends AsyncDisposable {
  /** To a database that no test uses. */
  readonly connection: PostgresSocket;
}

const log = createLog({ level: "silent" });

async function startServer(): Promise<Server> {
  await using starting = new AsyncDisposableStack();
  const dataDir = await realpath(await mkdtemp(join(await fastFolder(), "inlet-pg-")));
  starting.defer(() => rm(dataDir, { recursive: true, force: true }));
  const { signal } = new AbortController();
  const { connection } = starting.use(await startLocalPostgres({ dataDir, log, signal }));
  await prepareTemplate(connection);
  const owned = starting.move();
  return { connection, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

const NEEDED_BYTES = 2 * 1024 ** 3;

/** In memory where there is room: a database is copied there in a twentieth of the time. */
async function fastFolder(): Promise<string> {
  const memory = "/dev/shm";
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > NEEDED_BYTES ? memory : tmpdir();
}

/** What outlives the run is nothing: no test kills this server, so it need not wait for a disk. */
const HASTE = ["fsync", "synchronous_commit", "full_page_writes", "autovacuum"];

async function prepareTemplate(connection: PostgresSocket): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    for (const setting of HASTE) await client.query(`ALTER SYSTEM SET ${setting} = off`);
    await client.query("SELECT pg_reload_conf()");
    await client.query(`CREATE DATABASE ${TEMPLATE}`);
  } finally {
    await client.end();
  }
  await migrate({ connection: { ...connection, database: TEMPLATE }, log });
}
