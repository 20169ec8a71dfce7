import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { sql } from "kysely";
import { describe, expect, it } from "vitest";
import { isUniqueViolation, openDatabase } from "../../src/data/database.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { opened } from "../support/opened.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const database = opened(createTestDatabase);

const one = ({ db }: Pick<TestDatabase, "db"> = database) =>
  sql<{ n: number }>`SELECT 1::bigint AS n`.execute(db);
const answers = async (from?: Pick<TestDatabase, "db">): Promise<boolean> =>
  one(from).then(
    () => true,
    () => false,
  );

describe("the database", () => {
  it("returns a bigint as a number, and JSON as a parsed value", async () => {
    const { rows } = await sql`SELECT 7::bigint AS a, '{"b_c": [1]}'::json AS json_value`.execute(
      database.db,
    );
    expect(rows).toEqual([{ a: 7, jsonValue: { b_c: [1] } }]);
  });

  it("throws UnavailableError if no server listens at the address", async () => {
    const connections = [
      { host: "/nonexistent/folder", user: "inlet", database: "inlet" },
      { url: "postgres://inlet@127.0.0.1:1/inlet" },
    ];
    for (const connection of connections) {
      await using away = openDatabase({ connection });
      await expect(sql`SELECT 1`.execute(away.db)).rejects.toThrow(UnavailableError);
    }
  });

  it("throws UnavailableError when the server never responds", async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket)).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const url = `postgres://inlet@127.0.0.1:${(silent.address() as AddressInfo).port}/inlet`;
    await using away = openDatabase({ connection: { url }, connectTimeoutMs: 50 });
    await expect(sql`SELECT 1`.execute(away.db)).rejects.toThrow(UnavailableError);
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it("throws UnavailableError when a query takes too long, and works afterwards", async () => {
    await using hasty = openDatabase({ connection: database.connection, statementTimeoutMs: 100 });
    await expect(sql`SELECT pg_sleep(60)`.execute(hasty.db)).rejects.toThrow(UnavailableError);
    await until(() => answers(hasty));
  });

  it("throws UnavailableError when all connections stay busy, and works afterwards", async () => {
    const { connection } = database;
    await using small = openDatabase({ connection, maxConnections: 1, connectTimeoutMs: 200 });
    // Opens the connection first, because a slow machine may need several tries.
    await until(() => answers(small));
    await small.db.transaction().execute(async (trx) => {
      await sql`SELECT 1`.execute(trx);
      await expect(one(small)).rejects.toThrow(UnavailableError);
    });
    await until(() => answers(small));
  });

  it("throws UnavailableError if the server cuts connections, even in a transaction, and then reconnects", async () => {
    const other = await database.connect();
    const cut = () =>
      other.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      );
    const cutInside = database.db.transaction().execute(async (trx) => {
      await sql`SELECT 1`.execute(trx);
      await cut();
      await sql`SELECT 1`.execute(trx);
    });
    // This process learns of a lost idle connection a moment later. A query before that still fails.
    const heals = () => until(() => answers());
    await expect(cutInside).rejects.toThrow(UnavailableError);
    await heals();
    await cut();
    await heals();
    await other.end();
  });

  it("throws the driver's errors for invalid queries, and identifies which unique constraint was violated", async () => {
    await expect(sql`SELECT nonsense`.execute(database.db)).rejects.toMatchObject({ code: "42703" });
    await sql`CREATE TABLE things (n integer CONSTRAINT things_n UNIQUE)`.execute(database.db);
    await sql`INSERT INTO things VALUES (1)`.execute(database.db);
    const error = await sql`INSERT INTO things VALUES (1)`.execute(database.db).catch((thrown) => thrown);
    expect([
      isUniqueViolation(error),
      isUniqueViolation(error, "things_n"),
      isUniqueViolation(error, "other"),
    ]).toEqual([true, true, false]);
  });
});
