import { randomBytes } from "node:crypto";
import pg from "pg";
import { inject } from "vitest";
import {
  type Database,
  type DatabaseConnection,
  type DatabaseOptions,
  openDatabase,
} from "../../src/data/database.ts";
import { TEMPLATE, USER } from "./postgres-server.ts";

/** A database of a test's own on the run's PostgreSQL. */
export interface TestDatabase extends Database {
  readonly connection: Extract<DatabaseConnection, { host: string }>;
  /** A client beside the pool: for transactions that a test holds open. */
  readonly connect: () => Promise<pg.Client>;
}

/** Makes a database as the migrations leave it; with `empty`, one with nothing in it. Dropped on disposal. */
export async function createTestDatabase(
  options: { readonly empty?: boolean } & Omit<DatabaseOptions, "connection"> = {},
): Promise<TestDatabase> {
  const { empty = false, ...poolOptions } = options;
  const broker = await fetch(`http://127.0.0.1:${inject("postgresBroker")}/`);
  if (!broker.ok) throw new Error(await broker.text());
  const { host } = (await broker.json()) as { host: string };
  const name = `t_${randomBytes(6).toString("hex")}`;
  await administer(
    host,
    `CREATE DATABASE ${name} TEMPLATE ${empty ? "template0" : TEMPLATE} STRATEGY file_copy`,
  );
  const connection = { host, user: USER, database: name };
  const database = openDatabase({ connection, maxConnections: 5, ...poolOptions });
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
      await administer(host, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function administer(host: string, statement: string): Promise<void> {
  const client = new pg.Client({ host, user: USER, database: "postgres" });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
