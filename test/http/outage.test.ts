import pg from "pg";
import { expect, it } from "vitest";
import { createTestApi } from "../support/api.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";

const api = opened(createTestApi);

it("API requests receive 503 with Retry-After while the database is down, and succeed again once the database is back", async () => {
  const { connection } = api.database;
  const server = new pg.Client({ ...connection, database: "postgres" });
  await server.connect();
  await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS false`);
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [
    connection.database,
  ]);
  for (const [method, path, body] of [
    ["GET", "/blueprints"],
    ["POST", "/blueprints", { title: "a" }],
    ["DELETE", "/apps/app_x"],
  ] as const) {
    const answer = await api.call(method, path, body);
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    expect(answer.body.message).not.toMatch(/postgres|sql|database/i);
  }
  expect(api.lines.findLast(({ status }) => status === 503)).toMatchObject({ level: "warn" });
  await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS true`);
  await server.end();
  await until(async () => (await api.call("GET", "/blueprints")).status === 200);
});
