import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from as copyFrom } from "pg-copy-streams";
import type { PostgresSocket } from "../local-postgres.ts";
import type { TableShape } from "./database-snapshot.ts";

/** A snapshot on its way into an empty database: all of it is there once it is finished, nothing where it is disposed before. */
export interface DatabaseLoad extends AsyncDisposable {
  /** Answers how many rows came. One table at a time. */
  readonly load: (table: TableShape, content: Readable) => Promise<number>;
  readonly finish: (sequences: Readonly<Record<string, string>>) => Promise<void>;
}

/**
 * @param connection of a database that has the snapshot's migrations, and nothing else
 * @throws the driver's errors
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
  // Rows come table by table, and are as triggers have made them: neither foreign keys nor triggers are to look at each.
  await client.query("SET LOCAL session_replication_role = replica");
  const owned = opening.move();
  return {
    async load({ name, columns }, content) {
      const table = pg.escapeIdentifier(name);
      // A migration may have written rows, which the snapshot has as they became.
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
