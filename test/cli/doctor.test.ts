import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { checkClock } from "../../src/cli/doctor/check-clock.ts";
import type { Found } from "../../src/cli/doctor/check-result.ts";
import { findPatchedRelease } from "../../src/cli/doctor/redis-releases.ts";
import { openKeyring } from "../../src/data/keyring/keyring.ts";
import { runInlet } from "../support/command.ts";
import { opened } from "../support/opened.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { NOBODY, rows } from "./opened-commands.ts";

const redis = opened(() => startRedis(["--appendonly", "yes"]));
const database = opened(createTestDatabase);
const alerts = readFileSync(new URL("../../config/prometheus/alerts.yaml", import.meta.url), "utf8");

function databaseUrl(name = database.connection.database, user = database.connection.user): string {
  const { host } = database.connection;
  return `postgresql://${user}:a-password@localhost/${name}?host=${encodeURIComponent(host)}`;
}

/** Runs `inlet doctor` with external stores and returns the findings about them, by the name of the check. */
async function diagnose(env: Readonly<Record<string, string>> = {}): Promise<ReadonlyMap<string, Found>> {
  const { stdout } = await runInlet(["doctor", "-o", "json"], {
    env: {
      DATABASE_URL: databaseUrl(),
      REDIS_URL: redis.url.replace("//", "//:a-password@"),
      INLET_DURABILITY: "process",
      INLET_MASTER_KEY: randomBytes(32).toString("base64"),
      INLET_URL: NOBODY,
      ...env,
    },
  });
  expect(stdout).not.toContain("a-password");
  const found: readonly Found[] = rows(stdout);
  return new Map(found.map((one) => [one.check.replace(/127\.0\.0\.1:\d+/, "server"), one]));
}

const withoutPassword = () => ({ REDIS_URL: redis.url });

describe("inlet doctor, with external stores", () => {
  it("reports version, durability, memory, clock and migrations of stores without problems", async () => {
    const found = await diagnose(withoutPassword());
    for (const check of [
      "Redis server",
      "Redis server: durability",
      "Redis server: memory",
      "Redis server: clock",
      "PostgreSQL",
      "PostgreSQL: clock",
      "PostgreSQL: migrations",
    ])
      expect(found.get(check), check).toMatchObject({ state: "ok" });
  });

  it("names a wrong eviction policy, a full Redis and a durability below the required one", async () => {
    await redis.client.config("SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1mb");
    const found = await diagnose({ ...withoutPassword(), INLET_DURABILITY: "replica" });
    await redis.client.config("SET", "maxmemory-policy", "noeviction", "maxmemory", "0");
    const messages = [
      ["Redis server", "maxmemory-policy is allkeys-lru"],
      ["Redis server: memory", "Redis is full"],
      ["Redis server: durability", '"replica" is required'],
    ] as const;
    for (const [check, message] of messages)
      expect(found.get(check)).toMatchObject({ state: "wrong", message: expect.stringContaining(message) });
    expect(alerts).toContain(`suggested_action: "${found.get("Redis server: memory")?.suggestedAction}"`);
  });

  it("warns about a Redis without security fixes, and names the release to install", async () => {
    const found = (await diagnose(withoutPassword())).get("Redis server: security fixes");
    const version = /redis_version:(.*)/.exec(await redis.client.info("server"))?.[1]?.trim() ?? "";
    const patched = findPatchedRelease({ name: "Redis", version });
    expect(found?.suggestedAction).toBe(
      patched && `Install Redis ${patched} or a later release. See the page Operating.`,
    );
  });

  it("warns if no durability was chosen", async () => {
    const found = await diagnose({ ...withoutPassword(), INLET_DURABILITY: "" });
    expect(found.get("Redis server: durability")).toMatchObject({
      state: "warning",
      suggestedAction: expect.stringContaining("INLET_DURABILITY=process"),
    });
  });

  it("says why a store cannot be reached, without showing the passwords", async () => {
    await redis.client.config("SET", "requirepass", "another-password");
    const found = await diagnose({ DATABASE_URL: databaseUrl("no_such_database") });
    await redis.client.config("SET", "requirepass", "");
    expect(found.get("Redis server")).toMatchObject({
      state: "wrong",
      message: expect.stringContaining("WRONGPASS"),
      suggestedAction: expect.stringContaining("REDIS_URL"),
    });
    expect(found.get("PostgreSQL")).toMatchObject({
      state: "wrong",
      message: expect.stringContaining("no_such_database"),
      suggestedAction: expect.stringContaining("DATABASE_URL"),
    });
  });

  it("names the table that the user of PostgreSQL may not read", async () => {
    const role = `r_${randomBytes(6).toString("hex")}`;
    await sql`CREATE ROLE ${sql.ref(role)} LOGIN`.execute(database.db);
    const found = await diagnose({ ...withoutPassword(), DATABASE_URL: databaseUrl(undefined, role) });
    await sql`DROP ROLE ${sql.ref(role)}`.execute(database.db);
    expect(found.get("PostgreSQL")).toMatchObject({
      state: "wrong",
      message: expect.stringContaining("schema_migrations"),
      suggestedAction: expect.stringContaining("permissions"),
    });
  });

  it("tells apart the master key of the database and another one", async () => {
    const masterKey = randomBytes(32);
    await openKeyring({ db: database.db, masterKey, clock: Date.now });
    const INLET_MASTER_KEY = masterKey.toString("base64");
    expect((await diagnose({ ...withoutPassword(), INLET_MASTER_KEY })).get("master key")).toMatchObject({
      state: "ok",
    });
    const { masterKeyId } = await database.db
      .selectFrom("cluster")
      .select("masterKeyId")
      .executeTakeFirstOrThrow();
    expect((await diagnose(withoutPassword())).get("master key")).toMatchObject({
      state: "wrong",
      message: expect.stringContaining(masterKeyId),
      suggestedAction: expect.stringContaining("INLET_MASTER_KEY"),
    });
  });

  it("lists migrations that the next start applies, and changes nothing", async () => {
    await using empty = await createTestDatabase({ empty: true });
    const env = { ...withoutPassword(), DATABASE_URL: databaseUrl(empty.connection.database) };
    expect((await diagnose(env)).get("PostgreSQL: migrations")).toMatchObject({
      state: "ok",
      message: expect.stringContaining("empty"),
    });
    const { rows: tables } = await sql`SELECT 1 FROM pg_tables WHERE schemaname = 'public'`.execute(empty.db);
    expect(tables).toEqual([]);

    await using behind = await createTestDatabase();
    const newest = await behind.db.transaction().execute(async (trx) => {
      const { rows: deleted } = await sql<{ name: string }>`
        DELETE FROM schema_migrations WHERE number = (SELECT max(number) FROM schema_migrations) RETURNING name`.execute(
        trx,
      );
      return deleted[0]?.name;
    });
    const found = await diagnose({ ...env, DATABASE_URL: databaseUrl(behind.connection.database) });
    expect(found.get("PostgreSQL: migrations")).toMatchObject({
      state: "warning",
      message: expect.stringContaining(String(newest)),
    });
  });

  it("names a read-only database with the action of its alert rule", async () => {
    await using readOnly = await createTestDatabase();
    const { database: name } = readOnly.connection;
    await sql`ALTER DATABASE ${sql.ref(name)} SET default_transaction_read_only = on`.execute(readOnly.db);
    const found = await diagnose({ ...withoutPassword(), DATABASE_URL: databaseUrl(name) });
    const writes = found.get("PostgreSQL: writes");
    expect(writes).toMatchObject({ state: "wrong", message: "PostgreSQL is read-only." });
    expect(alerts).toContain(`suggested_action: "${writes?.suggestedAction}"`);
  });
});

it("checkClock reports only a difference that the duration of the request does not explain", () => {
  const stateOf = (serverMs: number) =>
    checkClock("x", { serverMs, sentMs: 100_000, receivedMs: 110_000 }).state;
  expect([96_000, 105_000, 114_000].map(stateOf)).toEqual(["ok", "ok", "ok"]);
  expect([94_000, 116_000].map(stateOf)).toEqual(["warning", "warning"]);
  const { suggestedAction } = checkClock("x", { serverMs: 0, sentMs: 100_000, receivedMs: 110_000 });
  expect(alerts).toContain(`suggested_action: "${suggestedAction}"`);
});
