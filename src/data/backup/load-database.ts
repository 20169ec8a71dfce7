import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { PostgresSocket } from "../local-postgres.ts";
import type { TableShape } from "./database-snapshot.ts";

/** Loads a snapshot into an empty database in one transaction. Disposal before `finish` rolls it back. */
export interface DatabaseLoad extends AsyncDisposable {
  /** Loads one table and returns the number of rows. Load one table at a time. */
  readonly load: (table: TableShape, content: Readable) => Promise<number>;
  readonly finish: (sequences: Readonly<Record<string, string>>) => Promise<void>;
}

/**
 * Opens the transaction for loading a snapshot.
 *
 * @param connection a database with the snapshot's migrations applied and no other data
 * @throws errors of the PostgreSQL driver
 */
export async function openDatabaseLoad(connection: PostgresSocket): Promise<DatabaseLoad> {
  await using opening = new AsyncDisposableStack();
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: 10_000,
    application_name: "inlet restore",
  });
  client.on("error", () => {});
  await client.connect();
  opening.defer(() => client.end());
  await client.query("BEGIN");
  // Disables foreign key checks, because tables are loaded in any order, and triggers, because they already ran for the original rows.
  await client.query("SET LOCAL session_replication_role = replica");
  const owned = opening.move();
  return {
    async load({ name, columns }, content) {
      const table = pg.escapeIdentifier(name);
      // A migration may have inserted rows into the table. The snapshot contains the current form of these rows.
      await client.query(`DELETE FROM ${table}`);
      const list = columns.map(pg.escapeIdentifier).join(", ");
      const rows = client.query(copyFrom(`COPY ${table} (${list}) FROM STDIN`));
      await pipeline(content, rows);
      return rows.rowCount;
    },
    async finish(sequences) {
      for (const [name, last] of Object.entries(sequences))
        await client.query("SELECT setval(quote_ident($1)::regclass, $2)", [name, last]);
      await client.query("COMMIT");
      await client.query("ANALYZE");
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
