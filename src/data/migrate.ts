import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { sql } from "kysely";
import type { Log } from "../log.ts";
import { sealPlainAddresses } from "./channels/seal-addresses.ts";
import { type DatabaseConnection, openDatabase, type Queryable } from "./database.ts";
import type { Keyring } from "./keyring/keyring.ts";

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
 * The migrations 1 to 34, which created the same schema as the baseline (`0034_baseline.sql`). A database or backup with these migrations
 * counts as one with the baseline. The recorded migrations are not changed, so that versions with the 34 files still work.
 */
const REPLACED = {
  newest: "0034_more_limits.sql",
  /** SHA-256 of their names and checksums. */
  digest: "14708a400ac8cb749be072d507b8988bc7721b1892bdfbc70079f8a601a42ec5",
};
const UPGRADE_ADVICE = {
  database: `Start the last version that has the migration ${REPLACED.newest} on it once, then this one.`,
  backup: `Restore it with the last version that has the migration ${REPLACED.newest}, start that version once, then this one.`,
};

/**
 * Migrates the database to this version. Applies the missing SQL files (`NNNN_name.sql`) in order, each in its own transaction,
 * and records their checksums. Only one process migrates at a time. Others wait, and then find the database up to date.
 *
 * The first file is the baseline, which creates the whole schema. The line `-- served from NNNN` in a later file lets earlier versions
 * use the migrated database. Without it, they reject the database.
 *
 * @param options.upTo number of the last migration to apply
 * @param options.openKeyring opens the keyring if channel addresses are still stored in plain text. Only an empty database needs none
 * @throws MigrationError if the database is too old or too new for this version, or if an applied file has changed
 */
export async function migrate(options: {
  readonly connection: DatabaseConnection;
  readonly log: Log;
  readonly directory?: URL;
  readonly upTo?: number;
  readonly openKeyring?: (db: Queryable) => Promise<Keyring>;
}): Promise<void> {
  const { connection, log, directory = DIRECTORY, upTo = Number.POSITIVE_INFINITY, openKeyring } = options;
  const migrations = (await readMigrations(directory)).filter(({ number }) => number <= upTo);
  // Use a separate pool without a statement timeout, because migrations may take longer than any query of the API. Closing the
  // pool releases the advisory lock.
  await using database = openDatabase({ connection, maxConnections: 1, statementTimeoutMs: 0 });
  await database.db.connection().execute(async (session) => {
    await sql`SELECT pg_advisory_lock(${LOCK})`.execute(session);
    await applyMissing(session, migrations, log);
    if (openKeyring) await session.transaction().execute((trx) => sealPlainAddresses(trx, openKeyring));
  });
}

/**
 * Checks that this version contains all given migrations, unmodified. Only then can it create the database that a backup needs.
 *
 * @throws MigrationError
 */
export async function checkMigrationsKnown(applied: readonly AppliedMigration[]): Promise<void> {
  const migrations = await readMigrations(DIRECTORY);
  const newest = newestOf(migrations);
  const unknown = applied.find(({ number }) => number > newest);
  if (unknown !== undefined) {
    throw new MigrationError(
      `The backup contains the migration ${unknown.name}, which this version of Inlet does not have. Use a newer version.`,
    );
  }
  rejectIncompatible(migrations, countBaseline(migrations, applied, "backup"));
}

/**
 * Returns the names of the migrations that `migrate` would apply, without applying them. Returns `undefined` for a database that has never
 * been migrated.
 *
 * @throws MigrationError as `migrate` does
 */
export async function findMissingMigrations(db: Queryable): Promise<readonly string[] | undefined> {
  const { rows } = await sql<{ found: string | null }>`
    SELECT to_regclass('schema_migrations')::text AS found`.execute(db);
  if (rows[0]?.found == null) return undefined;
  return (await readMissing(db, await readMigrations(DIRECTORY))).map(({ name }) => name);
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
  const missing = await readMissing(db, migrations);
  for (const migration of missing) {
    await db.transaction().execute(async (trx) => {
      await sql.raw(migration.text).execute(trx);
      await sql`
        INSERT INTO schema_migrations (number, name, checksum, served_from)
        VALUES (${migration.number}, ${migration.name}, ${migration.checksum}, ${migration.servedFrom})`.execute(
        trx,
      );
    });
  }
  if (missing.length > 0)
    log.info(
      { event: "database.migrated", migrations: missing.map(({ name }) => name) },
      "database migrated",
    );
}

async function readMissing(db: Queryable, migrations: readonly Migration[]): Promise<readonly Migration[]> {
  const { rows } = await sql<AppliedMigration>`
    SELECT number, name, checksum, served_from FROM schema_migrations ORDER BY number`.execute(db);
  const applied = countBaseline(migrations, rows, "database");
  rejectIncompatible(migrations, applied);
  return migrations.slice(applied.length);
}

/** Returns the applied migrations, with the baseline in place of the migrations that it replaces. */
function countBaseline(
  [baseline]: readonly Migration[],
  applied: readonly AppliedMigration[],
  subject: keyof typeof UPGRADE_ADVICE,
): readonly AppliedMigration[] {
  const [oldest] = applied;
  if (!baseline || !oldest || oldest.number >= baseline.number) return applied;
  const replaced = applied.filter(({ number }) => number <= baseline.number);
  const newest = replaced.at(-1) ?? oldest;
  if (newest.number < baseline.number) {
    throw new MigrationError(
      `The ${subject} is at the migration ${newest.name}, which is too old for this version. ${UPGRADE_ADVICE[subject]}`,
    );
  }
  const text = replaced.map(({ name, checksum }) => `${name} ${checksum}`).join("\n");
  if (createHash("sha256").update(text).digest("hex") !== REPLACED.digest) {
    throw new MigrationError(
      `The migrations up to ${newest.name} were applied to the database with different texts than the ones that ${baseline.name} replaces.`,
    );
  }
  return [baseline, ...applied.slice(replaced.length)];
}

const newestOf = (migrations: readonly Migration[]): number => migrations.at(-1)?.number ?? 0;

function rejectIncompatible(migrations: readonly Migration[], applied: readonly AppliedMigration[]): void {
  const newest = newestOf(migrations);
  const first = migrations[0]?.number ?? 1;
  applied.forEach((one, index) => {
    const ours = migrations[index];
    if (one.number !== first + index) {
      throw new MigrationError(
        `The database contains the migration ${one.name}, but lacks migration ${first + index}.`,
      );
    }
    if (ours && ours.checksum !== one.checksum) {
      throw new MigrationError(
        `The migration ${ours.name} was applied to the database with a different text than this version of Inlet contains.`,
      );
    }
    if (one.servedFrom > newest) {
      throw new MigrationError(
        `The database contains the migration ${one.name}, for which this version is too old. Start a newer version of Inlet, or restore a backup of this version into an empty data directory.`,
      );
    }
  });
}

async function readMigrations(directory: URL): Promise<readonly Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith(".sql")).sort();
  const first = Number(FILE_NAME.exec(files[0] ?? "")?.[1] ?? 1);
  return Promise.all(
    files.map(async (file, index) => {
      const number = Number(FILE_NAME.exec(file)?.[1]);
      if (number !== first + index)
        throw new MigrationError(
          `${file} has the wrong name: it should start with the number ${first + index}, as in 0001_name.sql.`,
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
