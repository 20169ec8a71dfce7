import { readFile } from "node:fs/promises";
import pg from "pg";
import type { PostgresSocket } from "../../src/data/local-postgres.ts";

const FILE = new URL("../data/fixtures/migrations-0001-to-0034.sql", import.meta.url);

export const EARLIER_MASTER_KEY = Buffer.alloc(32, 1);

/** Fills an empty database with the schema and the rows of a development version that had the migrations 1 to 34. */
export async function loadEarlierDatabase(connection: PostgresSocket): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query(await readFile(FILE, "utf8"));
  } finally {
    await client.end();
  }
}
