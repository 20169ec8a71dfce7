import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openAddress } from "../../src/data/channels/address-columns.ts";
import { setSchemaVersions } from "../../src/data/channels/schema-versions.ts";
import { createStoredChannels } from "../../src/data/channels/stored-channels.ts";
import type { Queryable } from "../../src/data/database.ts";
import { openKeyring, WrongMasterKeyError } from "../../src/data/keyring/keyring.ts";
import { MigrationError, migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";
import { EARLIER_MASTER_KEY, loadEarlierDatabase } from "../support/earlier-database.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const MIGRATIONS = new URL("../../src/data/migrations/", import.meta.url);
const BASELINE = 34;
const log = createLog({ level: "silent" });
const open = (db: Queryable, masterKey = EARLIER_MASTER_KEY) =>
  openKeyring({ db, masterKey, clock: Date.now });

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
});
afterEach(() => database[Symbol.asyncDispose]());

const upgrade = (upTo?: number) =>
  migrate({ connection: database.connection, log, openKeyring: open, ...(upTo && { upTo }) });

const select = async <T>(text: string, { db }: Pick<TestDatabase, "db"> = database): Promise<readonly T[]> =>
  (await sql.raw<T>(text).execute(db)).rows;

interface Recorded {
  readonly number: number;
  readonly name: string;
  readonly servedFrom: number;
}
const listMigrations = () => select<Recorded>("SELECT * FROM schema_migrations ORDER BY number");

/** Columns that sealing the addresses changes. */
const CHANGED: Readonly<Record<string, string>> = {
  channels: "- 'id' - 'address_hash' - 'sealed_address'",
  channel_addresses: "- 'id' - 'address_hash'",
  cluster: "- 'plain_addresses'",
  schema_migrations: "- 'served_from'",
};

/** Returns the rows of each table as text, without the columns in `CHANGED`. */
async function readRows(): Promise<ReadonlyMap<string, string>> {
  const tables = await select<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
  );
  const all = new Map<string, string>();
  for (const { name } of tables) {
    const rows = await select<{ row: string }>(
      `SELECT (to_jsonb(t) ${CHANGED[name] ?? ""})::text AS row FROM ${name} AS t ORDER BY 1`,
    );
    all.set(name, rows.map(({ row }) => row).join("\n"));
  }
  return all;
}

/** Describes everything that the schema consists of. Two databases with equal descriptions have the same schema. */
async function describeSchema(of: TestDatabase): Promise<readonly string[]> {
  const namespace = "'public'::regnamespace";
  const parts = [
    `SELECT format('column %s.%s %s: %s %s %s %s %s', relname, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity,
       attgenerated, pg_get_expr(adbin, adrelid))
     FROM pg_attribute JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
     WHERE relnamespace = ${namespace} AND relkind = 'r' AND attnum > 0`,
    `SELECT format('index %s', pg_get_indexdef(indexrelid))
     FROM pg_index JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = ${namespace}`,
    `SELECT format('constraint %s.%s: %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid), convalidated)
     FROM pg_constraint WHERE connamespace = ${namespace}`,
    `SELECT format('trigger %s %s', pg_get_triggerdef(t.oid), tgenabled)
     FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid WHERE relnamespace = ${namespace} AND NOT tgisinternal`,
    `SELECT format('function %s', pg_get_functiondef(oid)) FROM pg_proc WHERE pronamespace = ${namespace}`,
    `SELECT format('sequence %s: %s %s %s %s %s %s', sequencename, data_type, start_value, min_value, max_value, increment_by, cycle)
     FROM pg_sequences WHERE schemaname = 'public'`,
    `SELECT format('%s %s', relkind, relname) FROM pg_class WHERE relnamespace = ${namespace}`,
  ];
  const lines: string[] = [];
  for (const text of parts)
    lines.push(...(await select<{ format: string }>(text, of)).map(({ format }) => format));
  return lines.sort();
}

describe("an empty database", () => {
  it("gets the baseline, with the schema that the 34 migrations before it created", async () => {
    await upgrade(BASELINE);
    expect(await listMigrations()).toMatchObject([{ number: 34, name: "0034_baseline.sql", servedFrom: 34 }]);
    expect(await select("SELECT singleton FROM changes_pruned")).toEqual([{ singleton: true }]);
    await using earlier = await createTestDatabase({ empty: true });
    await loadEarlierDatabase(earlier.connection);
    const schema = await describeSchema(earlier);
    expect(schema.length).toBeGreaterThan(1_000);
    expect(await describeSchema(database)).toEqual(schema);
  });
});

describe("a database with the 34 migrations that the baseline replaces", () => {
  beforeEach(() => loadEarlierDatabase(database.connection));

  it("keeps its rows and its recorded migrations", async () => {
    const [rows, migrations] = [await readRows(), await listMigrations()];
    for (const _ of [1, 2]) await upgrade(BASELINE);
    expect(migrations).toHaveLength(34);
    // Versions before migration 32 know only plain-text addresses, so they must reject the database.
    const ended = migrations.map((one) => (one.number === 32 ? { ...one, servedFrom: 32 } : one));
    expect(await listMigrations()).toEqual(ended);
    const after = await readRows();
    for (const [table, before] of rows) expect(after.get(table), table).toEqual(before);
    for (const table of ["organizations", "api_keys", "apps", "channels", "subscriptions", "connections"])
      expect(rows.get(table)).not.toBe("");
  });

  it("gets its plain-text addresses sealed, and finds its channels by current and former addresses", async () => {
    const current = await select<{ number: number; id: string }>(
      "SELECT number, id FROM channels ORDER BY number",
    );
    const former = await select<{ number: number; id: string }>(
      "SELECT channel_number AS number, id FROM channel_addresses ORDER BY 1",
    );
    expect([current.length, former.length]).toEqual([3, 2]);
    await upgrade();
    const { db } = database;
    const keyring = await open(db);
    const channels = createStoredChannels({ db, keyring });
    for (const { number, id } of [...current, ...former])
      expect((await channels.findById(id))?.channel.identity.number).toBe(number);
    const stored = await db.selectFrom("channels").selectAll().orderBy("number").execute();
    expect(stored.map((row) => openAddress(keyring, row))).toEqual(current.map(({ id }) => id));
    expect(await select("SELECT id FROM channels UNION SELECT id FROM channel_addresses")).toEqual([
      { id: null },
    ]);
    expect(await select("SELECT plain_addresses FROM cluster")).toEqual([{ plainAddresses: false }]);
  });

  it("gets version 1 of each schema, which stays the version of a definition that is written again", async () => {
    await upgrade(39);
    const [{ topic = "", type = "" } = {}] = await select<{ topic: string; type: string }>(
      "SELECT t.topic, t.type FROM topics AS t JOIN channels AS c ON c.number = t.channel_number WHERE c.uid = 'orders'",
    );
    const schema = { type: "object", required: ["ü"], description: 'a / "b"' };
    const events = JSON.stringify([{ type, schema }, { type: "other" }]);
    await sql`UPDATE channels SET events = ${events} WHERE uid = 'orders'`.execute(database.db);
    await upgrade();
    const { db } = database;
    await db.transaction().execute((trx) => setSchemaVersions(trx, [{ topic, schema }], Date.now()));
    expect(await select("SELECT topic, version, schema FROM schema_versions")).toEqual([
      { topic, version: 1, schema },
    ]);
    expect(await select("SELECT topic FROM topics WHERE schema_version IS NOT NULL")).toEqual([{ topic }]);
  });

  it("gets an address sealed that a version before migration 32 has written since", async () => {
    await upgrade();
    const late = "ch_written_by_an_earlier_version";
    await sql`UPDATE channels SET id = ${late} WHERE uid = 'orders'`.execute(database.db);
    await upgrade();
    const { db } = database;
    const channels = createStoredChannels({ db, keyring: await open(db) });
    expect((await channels.findById(late))?.channel.identity.uid).toBe("orders");
    expect(await select("SELECT id FROM channels WHERE id IS NOT NULL")).toEqual([]);
  });

  it("gets more addresses sealed than fit into one batch", async () => {
    await sql`
      INSERT INTO channels
      SELECT (jsonb_populate_record(one, jsonb_build_object('number', 1000000 + n, 'id', 'ch_' || n, 'uid', 'in' || n))).*
      FROM channels AS one, generate_series(1, 1001) AS n WHERE one.uid = 'returns'`.execute(database.db);
    await upgrade();
    expect(
      await select("SELECT count(*)::int AS n FROM channels WHERE id IS NULL AND sealed_address IS NOT NULL"),
    ).toEqual([{ n: 1_004 }]);
  });

  it("stays unchanged if the master key is wrong", async () => {
    const before = await select("SELECT * FROM channels ORDER BY number");
    const openKeyring = (db: Queryable) => open(db, Buffer.alloc(32, 9));
    const adopting = migrate({ connection: database.connection, log, openKeyring });
    await expect(adopting).rejects.toThrow(WrongMasterKeyError);
    // Later migrations have added columns.
    expect(await select("SELECT * FROM channels ORDER BY number")).toMatchObject(before);
    expect(await select("SELECT plain_addresses FROM cluster")).toEqual([{ plainAddresses: true }]);
  });

  it("is rejected at an older migration, with a message that names it and says what to do", async () => {
    await sql`DELETE FROM schema_migrations WHERE number > 33`.execute(database.db);
    const before = await readRows();
    const upgrading = upgrade();
    await expect(upgrading).rejects.toThrow(MigrationError);
    await expect(upgrading).rejects.toThrow(
      "The database is at the migration 0033_problems.sql, which is too old for this version. Start the last version that has the " +
        "migration 0034_more_limits.sql on it once, then this one.",
    );
    expect(await readRows()).toEqual(before);
  });

  it("is rejected if one of the migrations was applied with a different text", async () => {
    await sql`UPDATE schema_migrations SET checksum = 'x' WHERE number = 7`.execute(database.db);
    await expect(upgrade()).rejects.toThrow("with different texts");
  });
});

it("a later migration is applied on an adopted database and on a new one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "inlet-migrations-"));
  try {
    await cp(MIGRATIONS, folder, { recursive: true });
    const next = BASELINE + (await readdir(MIGRATIONS)).length;
    await writeFile(
      join(folder, `00${next}_next.sql`),
      `-- served from 00${next - 1}\nCREATE TABLE next (n integer);`,
    );
    await using adopted = await createTestDatabase({ empty: true });
    await loadEarlierDatabase(adopted.connection);
    const directory = pathToFileURL(`${folder}/`);
    for (const { connection, db } of [adopted, database]) {
      await migrate({ connection, log, openKeyring: open, directory });
      await sql`INSERT INTO next VALUES (1)`.execute(db);
      // This version accepts the database of the next one.
      await migrate({ connection, log, openKeyring: open });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
