import { sql } from "kysely";
import { expect, it } from "vitest";
import { createOrganization } from "../../../src/data/accounts/organizations.ts";
import { openDatabaseSnapshot } from "../../../src/data/backup/database-snapshot.ts";
import { openDatabaseLoad } from "../../../src/data/backup/load-database.ts";
import { recordChange } from "../../../src/data/changes.ts";
import { claimLease } from "../../../src/data/leases.ts";
import { opened } from "../../support/opened.ts";
import { createTestDatabase } from "../../support/postgres.ts";

const from = opened(() => createTestDatabase());
const to = opened(() => createTestDatabase());

const rowsOf = async (database: typeof from, table: string): Promise<readonly string[]> => {
  const { rows } = await sql<{ row: string }>`SELECT t::text AS row FROM ${sql.table(table)} AS t`.execute(
    database.db,
  );
  return rows.map(({ row }) => row).sort();
};

it("a database backup copies a consistent snapshot of every table into another database", async () => {
  const names = { organization: "with a\ttab, a \\ and\na line", space: "s", account: "a" };
  await from.db.transaction().execute((trx) => createOrganization(trx, names, Date.now()));
  await from.db.transaction().execute((trx) => recordChange(trx, { kind: "app", key: "1" }));
  await claimLease(from.db, { name: "duty", holder: "gone", ttlMs: 3_600_000 });
  // Redis keys contain the channel's number, so a restored database must not assign a number again.
  await sql`SELECT setval('channels_number_seq', 4711)`.execute(from.db);

  await using snapshot = await openDatabaseSnapshot(from.connection);
  const before = new Map<string, readonly string[]>();
  for (const { name } of snapshot.tables) before.set(name, await rowsOf(from, name));
  await from.db
    .transaction()
    .execute((trx) => createOrganization(trx, { ...names, organization: "too late" }, Date.now()));
  const { rows } = await sql<{ name: string }>`
    SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`.execute(
    from.db,
  );
  const copied = snapshot.tables.map(({ name }) => name);
  const leftOut = rows.map(({ name }) => name).filter((name) => !copied.includes(name));
  expect(leftOut.sort()).toEqual([
    "changes",
    "changes_pruned",
    "leases",
    "schema_migrations",
    "series_writes",
  ]);
  expect(snapshot.migrations[0]).toMatchObject({ number: 34, name: "0034_baseline.sql" });
  expect([snapshot.masterKeyId, snapshot.isMasterKey(Buffer.alloc(32))]).toEqual([undefined, false]);

  await using load = await openDatabaseLoad(to.connection);
  for (const table of snapshot.tables) {
    const { content, rows: count } = snapshot.copy(table);
    expect(await load.load(table, content)).toBe(count());
  }
  await load.finish(await snapshot.sequences());

  expect(before.get("organizations")?.join()).toContain("with a");
  for (const [table, rows] of before) expect(await rowsOf(to, table), table).toEqual(rows);
  expect(await rowsOf(to, "leases")).toEqual([]);
  const next = await sql<{ n: string }>`SELECT nextval('channels_number_seq') AS n`.execute(to.db);
  expect(Number(next.rows[0]?.n)).toBe(4712);
});

it("loading a database backup is rolled back if it is not finished", async () => {
  await using database = await createTestDatabase();
  {
    await using snapshot = await openDatabaseSnapshot(from.connection);
    await using load = await openDatabaseLoad(database.connection);
    for (const table of snapshot.tables) await load.load(table, snapshot.copy(table).content);
  }
  expect(await rowsOf(database, "organizations")).toEqual([]);
});
