import { randomBytes } from "node:crypto";
import pg from "pg";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/data/database.ts";
import type { PostgresSocket } from "../../src/data/local-postgres.ts";
import { askBroker } from "./broker.ts";
import { TEMPLATE } from "./servers.ts";
import { CEILING_MS } from "./until.ts";

/** A database of a test's own on the run's PostgreSQL. */
export interface TestDatabase extends Database {
  readonly connection: PostgresSocket;
  /** A client beside the pool: for transactions that a test holds open. */
  readonly connect: () => Promise<pg.Client>;
}

/** Makes a database as the migrations leave it; with `empty`, one with nothing in it. Dropped on disposal. */
export async function createTestDatabase(
  options: { readonly empty?: boolean } & Omit<DatabaseOptions, "connection"> = {},
): Promise<TestDatabase> {
  const { empty = false, ...poolOptions } = options;
  const { server, client } = await administer();
  const name = `t_${randomBytes(6).toString("hex")}`;
  await client.query(`CREATE DATABASE ${name} TEMPLATE ${empty ? "template0" : TEMPLATE} STRATEGY file_copy`);
  const connection = { ...server, database: name };
  const database = openDatabase({
    // A busy machine is no reason for a 503: those who wait for a connection get one.
    connection,
    maxConnections: 5,
    connectTimeoutMs: CEILING_MS,
    ...poolOptions,
  });
  return {
    db: database.db,
    connection,
    async connect() {
      const client = new pg.Client(connection);
      client.on("error", () => {});
      await client.connect();
      return client;
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]();
      await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

interface Administration {
  readonly server: PostgresSocket;
  /** Makes and drops the databases of all tests of this process: a connection for each would take half as long again. */
  readonly client: pg.Pool;
}

let administration: Promise<Administration> | undefined;

/** One for all; where it could not be opened, the next test tries again. */
function administer(): Promise<Administration> {
  administration ??= openAdministration().catch((error: unknown) => {
    administration = undefined;
    throw error;
  });
  return administration;
}

/** Never closed: it keeps no process alive. */
async function openAdministration(): Promise<Administration> {
  const server = await askBroker<PostgresSocket>("GET", "/postgres");
  const client = new pg.Pool({ ...server, max: 2, idleTimeoutMillis: 0, allowExitOnIdle: true });
  client.on("error", () => {});
  return { server, client };
}
