import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { installApp } from "../support/channels.ts";
import { createTestStores, startTestGateway, type TestGateway, type TestStores } from "../support/gateway.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const FAST = { everyMs: 20, slowEveryMs: 20, openAfterMs: 0, resolveAfterMs: 0 };

interface Problem {
  readonly kind: string;
  readonly severity: string;
  readonly message: string;
  readonly suggestedAction: string;
}

let stores: TestStores;
beforeEach(async () => {
  stores = await createTestStores();
});
afterEach(() => stores[Symbol.asyncDispose]());

const start = (env: Readonly<Record<string, string>> = {}): Promise<TestGateway> =>
  startTestGateway({ ...stores.env, ...env }, { problemTiming: FAST });
const ready = async ({ origin }: TestGateway) => (await fetch(`${origin}/readyz`)).json();
const problem = async (gateway: TestGateway, kind: string): Promise<Problem | undefined> =>
  (await gateway.api<Problem[]>("GET", "/problems?state=opened")).find((one) => one.kind === kind);
const eventsOf = ({ lines }: TestGateway, event: string) => lines.filter((line) => line.event === event);

describe("a gateway whose Redis comes back empty", () => {
  it("reports it in the log, in /readyz, as a metric and as a problem of each organization with a channel", async () => {
    await using gateway = await start();
    await installApp(gateway, [{ uid: "in", kind: "webhook", events: [{ type: "made" }] }]);
    expect(await ready(gateway)).toMatchObject({ status: "ready" });
    expect(await readMetrics(gateway.origin)).toContain("inlet_data_lost_timestamp_seconds 0");
    await stores.client.flushdb();
    await until(async () => (await problem(gateway, "data_lost")) !== undefined);
    expect(eventsOf(gateway, "redis.data_lost")).toMatchObject([{ level: "error" }]);
    expect(await ready(gateway)).toMatchObject({
      status: "degraded",
      checks: { redis: { ok: true, warnings: [expect.stringMatching(/^Redis lost data/)] } },
    });
    expect(await readMetrics(gateway.origin)).toMatch(/inlet_data_lost_timestamp_seconds 1\d{9}/);
    expect(await problem(gateway, "data_lost")).toMatchObject({
      severity: "error",
      message: expect.stringContaining("Redis lost data"),
    });
  });
});

describe("a gateway whose PostgreSQL rejects writes", () => {
  it("stays ready, but is degraded with the reason and a metric", async () => {
    await using gateway = await start();
    await sql`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`.execute(stores.db);
    await sql`CREATE TRIGGER fail BEFORE INSERT ON apps EXECUTE FUNCTION fail()`.execute(stores.db);
    await sql`
      CREATE FUNCTION fail_too() RETURNS event_trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`.execute(stores.db);
    await sql`CREATE EVENT TRIGGER fail ON ddl_command_start WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION fail_too()`.execute(
      stores.db,
    );
    await expect(installApp(gateway, [])).rejects.toThrow("503");
    expect(await ready(gateway)).toMatchObject({
      status: "degraded",
      checks: {
        database: { ok: true, warnings: [expect.stringMatching(/^The disk of PostgreSQL is full/)] },
      },
    });
    expect(await readMetrics(gateway.origin)).toContain("inlet_database_writable 0");
    await until(() => eventsOf(gateway, "database.not_writable").length === 1);
    await sql`DROP TRIGGER fail ON apps`.execute(stores.db);
    await sql`DROP EVENT TRIGGER fail`.execute(stores.db);
    await until(() => eventsOf(gateway, "database.writable").length === 1);
    expect(await ready(gateway)).toMatchObject({ status: "ready" });
  });
});

describe("a gateway with an external Redis", () => {
  it("warns at each start, in /readyz and as a problem if no durability level was chosen", async () => {
    await using gateway = await start({ INLET_DURABILITY: "" });
    expect(eventsOf(gateway, "redis.durability_not_chosen")).toMatchObject([
      { level: "warn", msg: expect.stringContaining("INLET_DURABILITY is not set") },
    ]);
    expect(await ready(gateway)).toMatchObject({
      status: "degraded",
      checks: { redis: { ok: true, warnings: [expect.stringContaining("INLET_DURABILITY is not set")] } },
    });
    await until(async () => (await problem(gateway, "durability_not_chosen")) !== undefined);
    expect(await problem(gateway, "durability_not_chosen")).toMatchObject({
      severity: "warning",
      suggestedAction: expect.stringContaining("INLET_DURABILITY="),
    });
  });

  it("accepts an explicit choice of none without a warning", async () => {
    await using gateway = await start();
    expect(await ready(gateway)).toMatchObject({ status: "ready" });
    expect(eventsOf(gateway, "redis.durability_not_chosen")).toEqual([]);
  });
});
