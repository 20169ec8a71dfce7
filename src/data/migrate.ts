import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import type { Log } from "../log.ts";
import { type DatabaseConnection, openDatabase, type Queryable } from "./database.ts";

/** The database cannot be served by this program, or was changed by another one. The message says what to do. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
  /** The oldest program, named by its newest migration, that can serve a database with this one applied. */
  readonly servedFrom: number;
}

/** A migration as the database has it on record. */
export interface AppliedMigration {
  readonly number: number;
  readonly name: string;
  /** SHA-256 of its text. */
  readonly checksum: string;
  readonly servedFrom: number;
}

const DIRECTORY = new URL("./migrations/", import.meta.url);
/** Any number will do, so long as it is always this one. */
const LOCK = 4_713_201;
const FILE_NAME = /^(\d{4})_([a-z0-9_]+)\.sql$/;
/** A comment line of a migration that only expands: programs as old as that one go on serving. */
const SERVED_FROM = /^-- served from (\d{4})$/m;

/**
 * Brings the database up to this program: applies the SQL files `NNNN_name.sql` that it lacks, in order, each in a
 * transaction of its own, recorded with its checksum. One program migrates at a time; the others wait and find nothing to do.
 *
 * A file may say `-- served from NNNN`; without it, programs that do not know the file refuse the database.
 *
 * @throws MigrationError when the database is newer than this program can serve, or an applied file differs from ours.
 */
export async function migrate(options: {
  readonly connection: DatabaseConnection;
  readonly log: Log;
  readonly directory?: URL;
  /** The last one to apply; default: all. */
  readonly upTo?: number;
}): Promise<void> {
  const { connection, log, directory = DIRECTORY, upTo } = options;
  const migrations = (await readMigrations(directory)).slice(0, upTo);
  // A door of its own without time limits: to wait for another program's migrations, or for long ones of our own, may take
  // longer than any query of the API. It closes at the end, and the lock goes with it.
  await using database = openDatabase({ connection, maxConnections: 1, statementTimeoutMs: 0 });
  await database.db.connection().execute(async (session) => {
    await sql`SELECT pg_advisory_lock(${LOCK})`.execute(session);
    await applyMissing(session, migrations, log);
  });
}

/**
 * Refuses what this program cannot make a database for: it has to know all of the migrations, and by the same text.
 *
 * @throws MigrationError
 */
export async function checkMigrationsKnown(applied: readonly AppliedMigration[]): Promise<void> {
  const migrations = await readMigrations(DIRECTORY);
  const unknown = applied.find((one) => !knows(migrations, one));
  if (unknown !== undefined) {
    throw new MigrationError(
      `It has ${unknown.name}, which this program does not know: take a newer version of Inlet.`,
    );
  }
  refuseWhatDoesNotFit(migrations, applied);
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
  refuseWhatDoesNotFit(migrations, applied);
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

function refuseWhatDoesNotFit(migrations: readonly Migration[], applied: readonly AppliedMigration[]): void {
  const newest = migrations.length;
  applied.forEach((one, index) => {
    const ours = migrations[index];
    if (one.number !== index + 1) {
      throw new MigrationError(`The database lacks migration ${index + 1} but has ${one.name}.`);
    }
    if (ours && ours.checksum !== one.checksum) {
      throw new MigrationError(
        `The database was set up by another text of ${ours.name} than this program has.`,
      );
    }
    if (one.servedFrom > newest) {
      throw new MigrationError(
        `The database has ${one.name}, which this program is too old to serve: start a newer version of Inlet.`,
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
        throw new MigrationError(`${file} is not migration ${index + 1} by its name.`);
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
