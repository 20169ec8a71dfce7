import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startWriteWatch } from "../../src/data/write-watch.ts";
import { createLog } from "../../src/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

let database: TestDatabase;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  database = await createTestDatabase();
  lines = [];
});
afterEach(() => database[Symbol.asyncDispose]());

const watch = () =>
  startWriteWatch({
    database,
    log: createLog({ level: "info", destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
    tickMs: 20,
  });
const run = async (text: string): Promise<void> => {
  await using client = await database.connect().then((client) => ({
    client,
    [Symbol.asyncDispose]: () => client.end(),
  }));
  await client.client.query(text);
};

/** Makes each new table fail, as PostgreSQL does when it cannot extend a file. */
const fail = (code: string) =>
  run(`
    CREATE FUNCTION fail() RETURNS event_trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '${code}'; END $$;
    CREATE EVENT TRIGGER fail ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION fail();`);

describe("the watch of PostgreSQL's writes", () => {
  it.each([
    ["53100", "The disk of PostgreSQL is full."],
    ["58030", "PostgreSQL cannot read or write its files."],
  ])("finds without other traffic that writes fail with %s, and that they work again", async (code, problem) => {
    await fail(code);
    await using found = watch();
    await until(() => found.problem() === problem);
    await run("DROP EVENT TRIGGER fail");
    await until(() => found.problem() === undefined && lines.length === 2);
    expect(lines).toMatchObject([
      { level: "error", event: "database.not_writable", problem },
      { level: "info", event: "database.writable" },
    ]);
  });

  it("finds that PostgreSQL is read-only, as after a failover to a standby", async () => {
    const { database: name } = database.connection;
    await run(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
    await using found = watch();
    await until(() => lines.length > 0);
    expect(found.problem()).toBe("PostgreSQL is read-only.");
    expect(lines).toMatchObject([{ event: "database.not_writable" }]);
  });

  it("notices a failed write of any other code at once, and leaves no table behind", async () => {
    await using found = watch();
    const write = sql`DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$`;
    await expect(write.execute(database.db)).rejects.toThrow("temporarily unavailable");
    expect(found.problem()).toBe("The disk of PostgreSQL is full.");
    await until(() => found.problem() === undefined);
    const { rows } = await sql`SELECT FROM pg_class WHERE relname = 'inlet_write_probe'`.execute(database.db);
    expect(rows).toEqual([]);
  });
});
