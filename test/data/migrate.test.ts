import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MigrationError, migrate } from "../../src/data/migrate.ts";
import { createLog } from "../../src/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const log = createLog({ level: "silent" });

let database: TestDatabase;
let folder: string;
beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  folder = await mkdtemp(join(tmpdir(), "inlet-migrations-"));
});
afterEach(async () => {
  await database[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

async function program(files: Readonly<Record<string, string>>): Promise<URL> {
  const directory = await mkdtemp(join(folder, "program-"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  return pathToFileURL(`${directory}/`);
}

const numbers = async () =>
  (await sql<{ n: number }>`SELECT n FROM numbers ORDER BY n`.execute(database.db)).rows.map(({ n }) => n);

const FIRST = {
  "0001_first.sql": "CREATE TABLE numbers (n integer PRIMARY KEY); INSERT INTO numbers VALUES (1);",
};
const SECOND = { ...FIRST, "0002_second.sql": "INSERT INTO numbers VALUES (2);" };

describe("migrate", () => {
  it("applies each migration once if several gateways start at the same time on an empty database", async () => {
    const slow = { "0001_first.sql": `${FIRST["0001_first.sql"]} SELECT pg_sleep(0.2);` };
    const directory = await program(slow);
    await Promise.all([
      migrate({ connection: database.connection, log, directory }),
      migrate({ connection: database.connection, log, directory }),
      migrate({ connection: database.connection, log, directory }),
    ]);
    expect(await numbers()).toEqual([1]);
  });

  it("waits until another process has finished migrating the same database", async () => {
    const directory = await program(FIRST);
    const other = await database.connect();
    await other.query("SELECT pg_advisory_lock(4713201)");
    const migrating = migrate({ connection: database.connection, log, directory });
    const waiting = () => other.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted");
    await until(async () => (await waiting()).rows.length === 1);
    await other.end();
    await migrating;
    expect(await numbers()).toEqual([1]);
  });

  it("stops after the migration in upTo, and applies the remaining migrations at the next call", async () => {
    const directory = await program(SECOND);
    const { connection } = database;
    await migrate({ connection, log, directory, upTo: 1 });
    expect(await numbers()).toEqual([1]);
    await migrate({ connection, log, directory });
    expect(await numbers()).toEqual([1, 2]);
  });

  it("applies only missing migrations", async () => {
    await migrate({ connection: database.connection, log, directory: await program(FIRST) });
    await migrate({ connection: database.connection, log, directory: await program(SECOND) });
    expect(await numbers()).toEqual([1, 2]);
    await using real = await createTestDatabase();
    await migrate({ connection: real.connection, log });
  });

  it("logs one line for all migrations that it applies, and none if there is nothing to do", async () => {
    const lines: Record<string, unknown>[] = [];
    const log = createLog({
      level: "info",
      destination: { write: (line) => void lines.push(JSON.parse(line)) },
    });
    const directory = await program(SECOND);
    for (let start = 0; start < 2; start++)
      await migrate({ connection: database.connection, log, directory });
    expect(lines).toMatchObject([{ event: "database.migrated", migrations: Object.keys(SECOND) }]);
    expect(lines).toHaveLength(1);
  });

  it("rolls back a failed migration", async () => {
    const directory = await program({
      ...FIRST,
      "0002_bad.sql": "INSERT INTO numbers VALUES (2); SELECT 1/0;",
    });
    await expect(migrate({ connection: database.connection, log, directory })).rejects.toThrow(
      "division by zero",
    );
    expect(await numbers()).toEqual([1]);
    await migrate({ connection: database.connection, log, directory: await program(SECOND) });
    expect(await numbers()).toEqual([1, 2]);
  });

  it("rejects a database that is too new for this version", async () => {
    await migrate({ connection: database.connection, log, directory: await program(SECOND) });
    const old = migrate({ connection: database.connection, log, directory: await program(FIRST) });
    await expect(old).rejects.toThrow(MigrationError);
    await expect(old).rejects.toThrow("0002_second.sql, for which this version is too old");
  });

  it("accepts a database of a newer version if the newer migrations are compatible", async () => {
    const expanding = { ...FIRST, "0002_second.sql": "-- served from 0001\nINSERT INTO numbers VALUES (2);" };
    await migrate({ connection: database.connection, log, directory: await program(expanding) });
    await migrate({ connection: database.connection, log, directory: await program(FIRST) });
    expect(await numbers()).toEqual([1, 2]);
  });

  it("rejects a database if the text of an applied migration differs from the file", async () => {
    await migrate({ connection: database.connection, log, directory: await program(FIRST) });
    const changed = await program({ "0001_first.sql": "CREATE TABLE numbers (n integer);" });
    await expect(migrate({ connection: database.connection, log, directory: changed })).rejects.toThrow(
      "with a different text",
    );
  });

  it("rejects migration files that are not numbered consecutively", async () => {
    const directory = await program({ ...FIRST, "0003_third.sql": "SELECT 1" });
    await expect(migrate({ connection: database.connection, log, directory })).rejects.toThrow(
      "should start with the number 2",
    );
  });
});
