import type { Readable } from "node:stream";
import pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { createSealingKey } from "../../lib/secrets/secret.ts";
import { opensCheck } from "../keyring/keyring.ts";
import type { PostgresSocket } from "../local-postgres.ts";
import type { AppliedMigration } from "../migrate.ts";

/** A table with those of its columns that are written, not computed. */
export interface TableShape {
  readonly name: string;
  readonly columns: readonly string[];
}

/** The whole database as it was at one moment. Writers go on meanwhile. */
export interface DatabaseSnapshot extends AsyncDisposable {
  /** Of PostgreSQL. */
  readonly version: string;
  readonly migrations: readonly AppliedMigration[];
  /** By which its master key is known; undefined where no gateway has started on it yet. */
  readonly masterKeyId: string | undefined;
  readonly isMasterKey: (key: Buffer) => boolean;
  readonly tables: readonly TableShape[];
  /** A table's rows in the text format of COPY; `rows` once it was read. One at a time. */
  readonly copy: (table: TableShape) => { readonly content: Readable; readonly rows: () => number };
  /** What each sequence has given out last. No older than the rows: to be read after them. */
  readonly sequences: () => Promise<Readonly<Record<string, string>>>;
}

/**
 * Tables whose rows mean nothing elsewhere: migrations are applied anew; leases are of gateways that run; changes are told to those,
 * by transactions of this very server; code is made anew from its schemas, and is not to come from a file.
 */
const LEFT_OUT = ["schema_migrations", "leases", "changes", "changes_pruned", "schema_code"];

/** Opens a snapshot: what is committed later is not in it. @throws the driver's errors */
export async function openDatabaseSnapshot(connection: PostgresSocket): Promise<DatabaseSnapshot> {
  await using opening = new AsyncDisposableStack();
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: 10_000,
    application_name: "inlet backup",
  });
  client.on("error", () => {});
  await client.connect();
  let copying: Readable | undefined;
  // A copy that was left in the middle would be waited for.
  opening.defer(async () => {
    if (copying?.readableEnded === false) client.connection.stream.destroy();
    else await client.end();
  });
  const select = async <T extends object>(text: string, values: readonly unknown[] = []): Promise<T[]> =>
    (await client.query<T>(text, [...values])).rows;
  // The first query takes the snapshot.
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
    masterKeyId: cluster?.id,
    isMasterKey: (key) => cluster !== undefined && opensCheck(createSealingKey(key), cluster.check),
    tables,
    copy({ name, columns }) {
      const list = columns.map(pg.escapeIdentifier).join(", ");
      const stream = client.query(copyTo(`COPY ${pg.escapeIdentifier(name)} (${list}) TO STDOUT`));
      copying = stream;
      return { content: stream, rows: () => stream.rowCount };
    },
    async sequences() {
      const rows = await select<{ name: string; last: string }>(
        `SELECT sequencename::text AS name, last_value::text AS last FROM pg_sequences
         WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY 1`,
      );
      return Object.fromEntries(rows.map(({ name, last }) => [name, last]));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
