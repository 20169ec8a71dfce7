import { resolve } from "node:path";
import { sql } from "kysely";
import type { Config } from "../../config/schema.ts";
import { type Database, isDatabaseError, openDatabase } from "../../data/database.ts";
import { isMasterKeyOf } from "../../data/keyring/keyring.ts";
import { findMissingMigrations, MigrationError } from "../../data/migrate.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { findMasterKey } from "../../lib/secrets/master-key.ts";
import { createSealingKey } from "../../lib/secrets/secret.ts";
import { checkClock } from "./check-clock.ts";
import { type Found, ok, warning, wrong } from "./check-result.ts";

type Settings = Pick<Config, "masterKey" | "newMasterKey" | "dataDir"> & { readonly databaseUrl: string };

/** Connects to the external PostgreSQL and checks it. Changes nothing there. */
export async function checkExternalPostgres(settings: Settings): Promise<readonly Found[]> {
  const check = "PostgreSQL";
  await using database = openDatabase({ connection: { url: settings.databaseUrl }, maxConnections: 1 });
  try {
    return [
      ...(await checkServer(check, database)),
      ...(await checkMigrations(check, database)),
      ...(await checkMasterKey(database, settings)),
    ];
  } catch (error) {
    if (!(error instanceof UnavailableError || isDatabaseError(error))) throw error;
    const { cause } = error;
    const reason = cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
    return [
      wrong(
        check,
        reason,
        "Check DATABASE_URL (address, user, password and database), the permissions of the user, and whether PostgreSQL accepts connections from this machine.",
      ),
    ];
  }
}

async function checkServer(check: string, { db }: Database): Promise<readonly Found[]> {
  const sentMs = Date.now();
  const { rows } = await sql<{ now: Date; version: string; isReplica: boolean; readOnly: string }>`
    SELECT clock_timestamp() AS now, current_setting('server_version') AS version,
      pg_is_in_recovery() AS is_replica, current_setting('default_transaction_read_only') AS read_only`.execute(
    db,
  );
  const receivedMs = Date.now();
  const [server] = rows;
  if (server === undefined) return [];
  const isReadOnly = server.isReplica || server.readOnly === "on";
  return [
    ok(check, `version ${server.version}`),
    ...(isReadOnly
      ? [
          wrong(
            `${check}: writes`,
            server.isReplica ? "PostgreSQL is a replica, so it is read-only." : "PostgreSQL is read-only.",
            WRITE_ACTION,
          ),
        ]
      : []),
    checkClock(check, { serverMs: server.now.getTime(), sentMs, receivedMs }),
  ];
}

async function checkMigrations(check: string, { db }: Database): Promise<readonly Found[]> {
  const name = `${check}: migrations`;
  try {
    const missing = await findMissingMigrations(db);
    if (missing === undefined)
      return [ok(name, "The database is empty. The first start creates the schema.")];
    if (missing.length === 0) return [ok(name, "All migrations are applied.")];
    return [
      warning(
        name,
        `The next start applies ${missing.join(", ")}`,
        "Make a backup before you start this version. See the page Upgrade.",
      ),
    ];
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error;
    return [wrong(name, error.message, "Start the version of Inlet that the message names.")];
  }
}

async function checkMasterKey(
  { db }: Database,
  { masterKey, newMasterKey, dataDir }: Settings,
): Promise<readonly Found[]> {
  const check = "master key";
  const { rows } = await sql<{ found: string | null }>`SELECT to_regclass('cluster')::text AS found`.execute(
    db,
  );
  if (rows[0]?.found == null) return [];
  const stored = await db.selectFrom("cluster").select("masterKeyId").executeTakeFirst();
  if (stored === undefined) return [];
  const key = masterKey ?? (await findMasterKey(resolve(dataDir)));
  if (key === undefined)
    return [wrong(check, `is missing, but the database uses the key ${stored.masterKeyId}`, KEY_ACTION)];
  for (const one of [key, ...(newMasterKey === undefined ? [] : [newMasterKey])])
    if (await isMasterKeyOf(db, one)) return [ok(check, `matches the database (${stored.masterKeyId})`)];
  const { id } = createSealingKey(key);
  return [wrong(check, `${id} does not match the database, which uses ${stored.masterKeyId}`, KEY_ACTION)];
}

/** Suggested action of the alert rule `InletDatabaseNotWritable`. */
const WRITE_ACTION =
  "See /readyz for the reason. Free space on the disk of PostgreSQL, or point DATABASE_URL at the primary server.";
const KEY_ACTION =
  "Set INLET_MASTER_KEY to the key of the first start, or restore it as master.key in the data directory. After `inlet rotate-master-key`, use the new key.";
