import { openRedis } from "../bus/connection/redis.ts";
import { startRedisClock } from "../bus/connection/redis-clock.ts";
import { startActiveLimits } from "../data/accounts/active-limits.ts";
import { awaitDatabase } from "../data/await-database.ts";
import { startChangeFeed } from "../data/changes.ts";
import { openDatabase, type Queryable } from "../data/database.ts";
import { migrate } from "../data/migrate.ts";
import { startSeriesWriter } from "../data/series/series-writer.ts";
import { createCompileQuota } from "../lib/json-schema/compile-quota.ts";
import { startSchemaCompiler } from "../lib/json-schema/compiler.ts";
import { ownBudgets } from "../limits/budgets.ts";
import { ownRates } from "../limits/shared-rates.ts";
import type { Foundation } from "./foundation.ts";
import { computeLimitDefaults } from "./limit-defaults.ts";
import type { Machine } from "./machine.ts";
import { createMasterKeyWatch, openMasterKeyring } from "./master-keys.ts";
import { startStoreWarnings } from "./store-warnings.ts";
import { openStores, useMachineStores } from "./stores.ts";
import { openGatewayTracing } from "./tracing.ts";

const MAX_DATABASE_CONNECTIONS = 10;
/** Maximum connections to PostgreSQL of all processes of a machine. Each process gets at least two, even if this exceeds the maximum. */
const MACHINE_CONNECTIONS = 40;

/** Returns the maximum number of connections to PostgreSQL of one process. */
const shareConnections = (processes: number): number =>
  Math.max(2, Math.min(MAX_DATABASE_CONNECTIONS, Math.floor(MACHINE_CONNECTIONS / processes)));

export interface FoundationDeps
  extends Pick<Foundation, "config" | "metrics" | "channelKinds" | "presets" | "outbound" | "clock" | "log"> {
  /** The data directory, already locked by the caller. */
  readonly dataDir: string;
  readonly machine: Machine | undefined;
  readonly signal: AbortSignal;
  /** Maximum time to wait for a connection to PostgreSQL, and for a reply from Redis, in ms. */
  readonly timeoutMs: number | undefined;
  /** Called before the gateway waits, with the reason as a part of a sentence. */
  readonly onWaiting: (reason: string) => void;
}

/**
 * Opens the stores and starts the tasks that read them continuously. Migrates the database first. Waits for an external database or Redis that does
 * not respond yet.
 *
 * @throws the errors of `openStores`, `migrate`, `openMasterKeyring` and `openRedis`
 */
export async function openFoundation(deps: FoundationDeps) {
  const { config, dataDir, metrics, channelKinds, presets, outbound, clock, log, signal } = deps;
  const { machine, timeoutMs, onWaiting } = deps;
  const { rates = ownRates, budgets = ownBudgets } = machine ?? {};
  await using opening = new AsyncDisposableStack();
  const tracing = await openGatewayTracing(config, { metrics, log });
  if (tracing !== undefined) opening.use(tracing);
  const stores = opening.use(
    await (machine ? useMachineStores(config, machine) : openStores(config, { dataDir, log, signal })),
  );
  const maxConnections = shareConnections(machine?.processes ?? 1);
  const database = opening.use(
    openDatabase({ connection: stores.database, maxConnections, connectTimeoutMs: timeoutMs }),
  );
  const { db } = database;
  const keyring = await awaitDatabase({ log, signal, onAway: onWaiting }, async () => {
    const openKeyring = (from: Queryable) => openMasterKeyring(from, stores.keys, clock);
    await migrate({ connection: stores.database, log, openKeyring });
    return openKeyring(db);
  });
  const changes = opening.use(await startChangeFeed({ db, log }));
  // Opened before everything that counts, so that it is disposed of last and writes the last counts.
  opening.use(startSeriesWriter({ db, metrics, clock, log }));
  const masterKey = createMasterKeyWatch({ keyring, changes, log });
  onWaiting("waiting for Redis");
  const redis = opening.use(
    await openRedis({
      url: stores.redisUrl,
      log,
      durability: config.durability ?? "none",
      durabilityAsserted: config.durabilityAsserted,
      signal,
      writeTimeoutMs: timeoutMs,
      commandTimeoutMs: timeoutMs,
    }),
  );
  const warnings = opening.use(startStoreWarnings({ stores, database, redis, config, metrics, clock, log }));
  const redisClock = opening.use(await startRedisClock({ redis, log, clock }));
  const limitDefaults = computeLimitDefaults(config, redis.state().maxMemoryBytes);
  const { of: limitsOf } = opening.use(
    await startActiveLimits({ db, changes, log, defaults: limitDefaults }),
  );
  const schemas = opening.use(
    startSchemaCompiler({
      quota: createCompileQuota({
        msPerMinuteOf: (id) => limitsOf(id).schemaCompileMsPerMinute,
        rates,
      }),
      onCompiled: metrics.schemaCompileSeconds.observe,
    }),
  );
  metrics.observe(
    "inlet_clock_ahead_seconds",
    "Seconds by which the clock of this machine is ahead of the clock of Redis",
    () => redisClock.differenceMs() / 1_000,
  );
  const foundation: Foundation = {
    db,
    changes,
    keyring,
    redis,
    outbound,
    channelKinds,
    presets,
    schemas,
    config,
    metrics,
    clock,
    redisClock,
    log,
    tracing,
    rates,
    budgets,
  };
  const owned = opening.move();
  return {
    foundation,
    stores,
    warnings,
    masterKey,
    limitDefaults,
    limitsOf,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
