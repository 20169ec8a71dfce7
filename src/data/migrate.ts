import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import type { Log } from "../log.ts";
import { type DatabaseConnection, openDatabase, type Queryable } from "./database.ts";

/** Thrown when this version of Inlet cannot use the database. The message says how to fix it. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
  /** Oldest version of Inlet that works with this migration, given as the number of that version's newest migration. */
  readonly servedFrom: number;
}

export interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  /** SHA-256 of the text of the migration. */
  readonly checksum: string;
  readonly servedFrom: number;
}

const DIRECTORY = new URL("./migrations/", import.meta.url);
/** Key of the advisory lock. The number is arbitrary but must never change. */
const LOCK = 4_713_201;
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;
/**
 * A comment line in a migration. It names the oldest version that still works with it, by the number of that version's newest
 * migration.
 */
const SERVED_FROM = /^-- served from (\d{4})$/m;

/**
 * Migrates the database to this version. Applies the missing SQL files (`NNNN_name.sql`) in order, each in its own transaction,
 * and records their checksums. Only one process migrates at a time. Others wait, and then find the database up to date.
 *
 * The line `-- served from NNNN` in a file lets earlier versions use the migrated database. Without it, they reject the database.
 *
 * @throws MigrationError if the database is too new for this version, or if an applied file has changed
 */
export async function migrate(options: {
  readonly connection: DatabaseConnection;
  readonly log: Log;
  readonly directory?: URL;
  readonly upTo?: number;
}): Promise<void> {
  const { connection, log, directory = DIRECTORY, upTo } = options;
  const migrations = (await readMigrations(directory)).slice(0, upTo);
  // Use a separate pool without a statement timeout, because migrations may take longer than any query of the API. Closing the
  // pool releases the advisory lock.
  await using database = openDatabase({ connection, maxConnections: 1, statementTimeoutMs: 0 });
  await database.db.connection().execute(async (session) => {
    await sql`SELECT pg_advisory_lock(${LOCK})`.execute(session);
    await applyMissing(session, migrations, log);
  });
}

/**
 * Checks that this version contains all given migrations, unmodified. Only then can it create the database that a backup needs.
 *
 * @throws MigrationError
 */
export async function checkMigrationsKnown(applied: readonly AppliedMigration[]): Promise<void> {
  const migrations = await readMigrations(DIRECTORY);
  const unknown = applied.find((one) => !knows(migrations, one));
  if (unknown !== undefined) {
    throw new MigrationError(
      `The backup contains the migration ${unknown.name}, which this version of Inlet does not have. Use a newer version.`,
    );
  }
  rejectIncompatible(migrations, applied);
}

async function applyMissing(db: Queryable, migrations: readonly Migration[], log: Log): Promise<void> {
  await sql`
    CREATE TABLE IF NOT EXISTS schema_migrations (
      number integer PRIMARY KEY,
      name text NOT NULL,
      checksum text NOT NULL,
      served_from integer NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )`.execute(db);
  const { rows: applied } = await sql<AppliedMigration>`
    SELECT number, name, checksum, served_from FROM schema_migrations ORDER BY number`.execute(db);
  rejectIncompatible(migrations, applied);
  for (const migration of migrations.slice(applied.filter((one) => knows(migrations, one)).length)) {
    await db.transaction().execute(async (trx) => {
      await sql.raw(migration.text).execute(trx);
      await sql`
        INSERT INTO schema_migrations (number, name, checksum, served_from)
        VALUES (${migration.number}, ${migration.name}, ${migration.checksum}, ${migration.servedFrom})`.execute(
        trx,
      );
    });
    log.info({ event: "database.migrated", migration: migration.name }, "applied a migration");
  }
}

const knows = (migrations: readonly Migration[], { number }: AppliedMigration): boolean =>
  number <= migrations.length;

function rejectIncompatible(migrations: readonly Migration[], applied: readonly AppliedMigration[]): void {
  const newest = migrations.length;
  applied.forEach((one, index) => {
    const ours = migrations[index];
    if (one.number !== index + 1) {
      throw new MigrationError(
        `The database contains the migration ${one.name}, but lacks migration ${index + 1}.`,
      );
    }
    if (ours && ours.checksum !== one.checksum) {
      throw new MigrationError(
        `The migration ${ours.name} was applied to the database with a different text than this version of Inlet contains.`,
      );
    }
    if (one.servedFrom > newest) {
      throw new MigrationError(
        `The database contains the migration ${one.name}, for which this version is too old. Start a newer version of Inlet.`,
      );
    }
  });
}

async function readMigrations(directory: URL): Promise<readonly Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1]);
      if (number !== index + 1)
        throw new MigrationError(
          `${file} has the wrong name: it should start with the number ${index + 1}, as in 0001_name.sql.`,
        );
      const text = await readFile(new URL(file, directory), "utf8");
      return {
        number,
        name: file,
        text,
        checksum: createHash("sha256").update(text).digest("hex"),
        servedFrom: Number(SERVED_FROM.exec(text)?.[1] ?? number),
      };
    }),
  );
}
