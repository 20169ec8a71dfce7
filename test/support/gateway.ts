import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cluster, Redis } from "ioredis";
import { loadConfig } from "../../src/config/load.ts";
import { type GatewayDeps, startGateway } from "../../src/gateway.ts";
import { API_KEY, callApi, type GatewayProcess, UNLIMITED } from "./gateway-process.ts";
import { createTestDatabase, type TestDatabase } from "./postgres.ts";
import { startRedisCluster } from "./redis.ts";
import { createTestLog } from "./test-log.ts";
import { createTestRedis } from "./test-redis.ts";
import { CEILING_MS } from "./until.ts";

/** A database and a Redis that several gateways of one test share. */
export interface TestStores extends AsyncDisposable {
  /** For inspecting stored data directly. */
  readonly client: Redis | Cluster;
  readonly db: TestDatabase["db"];
  /** Settings of a gateway on these stores. */
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Creates stores on the run's shared servers. Tests that kill a server use `startSharedStores` instead.
 * With `INLET_TEST_REDIS=cluster`, each call starts a separate Redis Cluster, because a Cluster has only
 * one database.
 */
export async function createTestStores(): Promise<TestStores> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), "inlet-gateway-"));
  starting.defer(() => rm(dir, { recursive: true, force: true }));
  const { connection, db } = starting.use(await createTestDatabase());
  const redis = starting.use(
    process.env.INLET_TEST_REDIS === "cluster" ? await startRedisCluster() : await createTestRedis(),
  );
  const { host, user, database } = connection;
  const owned = starting.move();
  return {
    client: redis.client,
    db,
    env: {
      DATABASE_URL: `postgresql://${user}@localhost/${database}?host=${encodeURIComponent(host)}`,
      REDIS_URL: redis.url,
      INLET_DURABILITY: "none",
      INLET_MASTER_KEY: randomBytes(32).toString("base64"),
      INLET_DATA_DIR: dir,
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A gateway in the test's process. Tests of the process itself use `startGatewayProcess`. */
export interface TestGateway extends Pick<GatewayProcess, "origin" | "api" | typeof Symbol.asyncDispose> {
  readonly greeting: string;
  /** The log lines, as objects. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

export type TestGatewayDeps = Omit<GatewayDeps, "log" | "signal">;

/**
 * Starts a gateway on a free port, as `src/main.ts` does, but with the longest timeout that a test allows.
 * Disposal drains the gateway.
 */
export async function startTestGateway(
  env: Readonly<Record<string, string>>,
  deps: TestGatewayDeps = {},
): Promise<TestGateway> {
  const settings = { INLET_PORT: "0", INLET_API_KEY: API_KEY, ...UNLIMITED, ...env };
  const loaded = loadConfig(settings);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.error));
  const config = loaded.value;
  const { log, lines } = createTestLog(config.logLevel);
  const stopping = new AbortController();
  const gateway = await startGateway(config, {
    log,
    signal: stopping.signal,
    timeoutMs: CEILING_MS,
    ...deps,
  });
  const origin = `http://127.0.0.1:${gateway.port}`;
  let greeting = "";
  await gateway.greet(async (text) => {
    greeting += text;
  });
  return {
    origin,
    greeting,
    lines,
    api: (method, path, body) => callApi(origin, method, path, body),
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("stopped by the test"));
      await gateway[Symbol.asyncDispose]();
    },
  };
}

/** Returns the value of one field in each entry of a topic, in topic order. */
export async function fieldsOn(
  { client }: Pick<TestStores, "client">,
  topic: string,
  field: string,
): Promise<readonly string[]> {
  const entries = await client.xrange(topic, "-", "+");
  return entries.map(([, fields]) => fields[fields.indexOf(field) + 1] ?? "");
}
