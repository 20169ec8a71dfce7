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
  const server = await askBroker<PostgresSocket>("GET", "/postgres");
  const name = `t_${randomBytes(6).toString("hex")}`;
  await administer(
    server,
    `CREATE DATABASE ${name} TEMPLATE ${empty ? "template0" : TEMPLATE} STRATEGY file_copy`,
  );
  const connection = { ...server, database: name };
  const database = openDatabase({
    // A busy machine is no reason for a 503: those who wait for a connection get one.
    ...{ connection, maxConnections: 5, connectTimeoutMs: CEILING_MS },
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
      await administer(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function administer(server: PostgresSocket, statement: string): Promise<void> {
  const client = new pg.Client(server);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
