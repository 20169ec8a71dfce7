import type { Readable } from "node:stream";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { createSealingKey } from "../../lib/secrets/secret.ts";
import { opensCheck } from "../keyring/keyring.ts";
import type { PostgresSocket } from "../local-postgres.ts";
import type { AppliedMigration } from "../migrate.ts";

/** A table and its columns. Generated columns are left out, because COPY cannot write to them. */
export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
}

/** A consistent snapshot of the whole database. Opening a snapshot does not block writers. */
export type DatabaseSnapshot = Awaited<ReturnType<typeof openDatabaseSnapshot>>;

/**
 * Tables that a backup leaves out.
 *
 * - `schema_migrations`: a restore applies the migrations itself.
 * - `leases`, `changes`, `changes_pruned`, `series_writes`: they belong to running gateways and to transactions of this server.
 */
const LEFT_OUT = ["schema_migrations", "leases", "changes", "changes_pruned", "series_writes"];

/**
 * Opens a snapshot of all data that is committed now.
 *
 * @throws errors of the PostgreSQL driver
 */
export async function openDatabaseSnapshot(connection: PostgresSocket) {
  await using opening = new AsyncDisposableStack();
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: 10_000,
    application_name: "inlet backup",
  });
  client.on("error", () => {});
  await client.connect();
  let copying: Readable | undefined;
  // Destroy the socket if a copy is unfinished, because `end` would wait for the rest of the copy.
  opening.defer(async () => {
    if (copying?.readableEnded === false) client.connection.stream.destroy();
    else await client.end();
  });
  const select = async <T extends object>(text: string, values: readonly unknown[] = []): Promise<T[]> =>
    (await client.query<T>(text, [...values])).rows;
  // PostgreSQL takes the snapshot at the first query after BEGIN.
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
  const migrations = await select<AppliedMigration>(
    `SELECT number, name, checksum, served_from AS "servedFrom" FROM schema_migrations ORDER BY number`,
  );
  const [cluster] = await select<{ id: string; check: string }>(
    `SELECT master_key_id AS id, master_key_check AS "check" FROM cluster`,
  );
  const tables = await select<TableShape>(
    `SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> ALL ($1)
       AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
     GROUP BY c.relname ORDER BY c.relname`,
    [LEFT_OUT],
  );
  const [server] = await select<{ server_version: string }>("SHOW server_version");
  const owned = opening.move();
  return {
    version: server?.server_version ?? "",
    migrations,
    /** Id of the key that encrypts all secrets. `undefined` if no gateway has started on this database yet. */
    masterKeyId: cluster?.id,
    isMasterKey: (key: Buffer): boolean =>
      cluster !== undefined && opensCheck(createSealingKey(key), cluster.check),
    tables: tables as readonly TableShape[],
    /**
     * Streams the rows of a table in the text format of COPY. After the stream has ended, `rows` returns their number.
     *
     * Only one table can be copied at a time.
     */
    copy({ name, columns }: TableShape) {
      const list = columns.map(pg.escapeIdentifier).join(", ");
      const stream = client.query(copyTo(`COPY ${pg.escapeIdentifier(name)} (${list}) TO STDOUT`));
      copying = stream;
      return { content: stream as Readable, rows: () => stream.rowCount };
    },
    /** Returns the last value of each sequence. Call it after copying all rows, so that no copied row has a number above its sequence. */
    async sequences(): Promise<Readonly<Record<string, string>>> {
      const rows = await select<{ name: string; last: string }>(
        `SELECT sequencename::text AS name, last_value::text AS last FROM pg_sequences
         WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY 1`,
      );
      return Object.fromEntries(rows.map(({ name, last }) => [name, last]));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
