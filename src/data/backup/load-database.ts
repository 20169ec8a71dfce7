import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { PostgresSocket } from "../local-postgres.ts";
import type { TableShape } from "./database-snapshot.ts";

/** Loads a backup into an empty database, in one transaction. Disposal before `finish` rolls the transaction back. */
export interface DatabaseLoad extends AsyncDisposable {
  /** Loads the rows of one table and returns their number. Only one table can be loaded at a time. */
  readonly load: (table: TableShape, content: Readable) => Promise<number>;
  readonly finish: (sequences: Readonly<Record<string, string>>) => Promise<void>;
}

/**
 * Opens the transaction that loads a backup.
 *
 * @param connection a database whose schema is that of the backup, without data
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
  // Disables foreign key checks, because the tables are loaded in any order. Also disables triggers, because they already ran for these
  // rows.
  await client.query("SET LOCAL session_replication_role = replica");
  // Backups of earlier versions have no such table.
  let hasRegistrations = false;
  const owned = opening.move();
  return {
    async load({ name, columns }, content) {
      hasRegistrations ||= name === "registrations";
      const table = pg.escapeIdentifier(name);
      // Delete rows that a migration has inserted, because the backup contains these rows in their current form.
      await client.query(`DELETE FROM ${table}`);
      const list = columns.map(pg.escapeIdentifier).join(", ");
      const rows = client.query(copyFrom(`COPY ${table} (${list}) FROM STDIN`));
      await pipeline(content, rows);
      return rows.rowCount;
    },
    async finish(sequences) {
      for (const [name, last] of Object.entries(sequences))
        await client.query("SELECT setval(quote_ident($1)::regclass, $2)", [name, last]);
      // The system in the backup may still run, so this copy must not take over its webhooks before an operator adopts them.
      if (hasRegistrations)
        await client.query(
          "UPDATE cluster SET registered_hooks_url = '' WHERE EXISTS (SELECT FROM registrations)",
        );
      await client.query("COMMIT");
      await client.query("ANALYZE");
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
