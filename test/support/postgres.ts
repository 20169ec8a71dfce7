import { randomBytes } from "node:crypto";
import pg from "pg";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/data/database.ts";
import type { PostgresSocket } from "../../src/data/local-postgres.ts";
import { askBroker } from "./broker.ts";
import { TEMPLATE } from "./servers.ts";
import { CEILING_MS } from "./until.ts";

/** A database of its own for each test, on the run's PostgreSQL. */
export interface TestDatabase extends Database {
  readonly connection: PostgresSocket;
  /** Opens a client outside the pool, for transactions that a test keeps open. */
  readonly connect: () => Promise<pg.Client>;
  /** Ends all connections to the database and rejects new ones, until `restore`. */
  readonly cutOff: () => Promise<void>;
  readonly restore: () => Promise<void>;
}

/** Creates a migrated database, or an empty one with `empty`. Disposal drops it. */
export async function createTestDatabase(
  options: { readonly empty?: boolean } & Omit<DatabaseOptions, "connection"> = {},
): Promise<TestDatabase> {
  const { empty = false, ...poolOptions } = options;
  const { server, client } = await getAdministration();
  const name = `t_${randomBytes(6).toString("hex")}`;
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${empty ? "template0" : TEMPLATE} STRATEGY file_copy`);
  const connection = { ...server, database: name };
  const database = openDatabase({
    // A busy machine must not cause a 503, so queries wait long enough for a connection.
    connection,
    maxConnections: 5,
    connectTimeoutMs: CEILING_MS,
    ...poolOptions,
  });
  return {
    ...database,
    connection,
    async connect() {
      const client = new pg.Client(connection);
      client.on("error", () => {});
      await client.connect();
      return client;
    },
    async cutOff() {
      await client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS false`);
      await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name]);
    },
    async restore() {
      await client.query(`ALTER DATABASE ${name} WITH ALLOW_CONNECTIONS true`);
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

interface Administration {
  readonly server: PostgresSocket;
  /** Creates and drops the databases of all tests in this process. One connection per database would take half as long again. */
  readonly client: pg.Pool;
}

let administration: Promise<Administration> | undefined;

/** Returns the shared administration. After a failure, the next test opens it again. */
function getAdministration(): Promise<Administration> {
  administration ??= openAdministration().catch((error: unknown) => {
    administration = undefined;
    throw error;
  });
  return administration;
}

/** Never closed, because the pool does not keep the process alive. */
async function openAdministration(): Promise<Administration> {
  const server = await askBroker<PostgresSocket>("GET", "/postgres");
  const client = new pg.Pool({ ...server, max: 2, idleTimeoutMillis: 0, allowExitOnIdle: true });
  client.on("error", () => {});
  return { server, client };
}
