import { unchosenDurability } from "../bus/connection/durability.ts";
import { createRedisMarker } from "../bus/connection/redis-marker.ts";
import type { Database } from "../data/database.ts";
import { startWriteWatch } from "../data/write-watch.ts";
import { formatTimestamp } from "../lib/clock.ts";
import { startDataLossWatch } from "../maintenance/data-loss-watch.ts";
import type { Foundation } from "./foundation.ts";
import type { Stores } from "./stores.ts";

export type StoreWarnings = ReturnType<typeof startStoreWarnings>;

/** Time for which `/readyz` shows a data loss, in ms. */
const LOSS_SHOWN_MS = 86_400_000;

/** Starts to watch for problems of PostgreSQL and Redis that do not keep the gateway from accepting deliveries. */
export function startStoreWarnings({
  stores,
  database,
  redis,
  config,
  metrics,
  clock,
  log,
}: Pick<Foundation, "redis" | "config" | "metrics" | "clock" | "log"> & {
  readonly stores: Pick<Stores, "diskSpace">;
  readonly database: Database;
}) {
  const dataLoss = startDataLossWatch({ db: database.db, marker: createRedisMarker({ redis }), clock, log });
  const writes = startWriteWatch({ database, log });
  metrics.observe(
    "inlet_database_writable",
    "1 while PostgreSQL accepts writes, otherwise 0",
    () => (writes.problem() === undefined ? 1 : 0),
    "min",
  );
  if (stores.diskSpace() !== undefined)
    metrics.observe(
      "inlet_data_dir_free_ratio",
      "Free fraction of the disk with the embedded servers",
      () => stores.diskSpace()?.freeFraction ?? 1,
    );
  metrics.observe(
    "inlet_data_lost_timestamp_seconds",
    "Unix time when the last data loss of Redis was noticed; 0 if there was none",
    () => (dataLoss.lostAt()?.getTime() ?? 0) / 1000,
  );

  /** Returns a warning if Redis is external and no durability level was chosen. */
  const durability = () =>
    config.redisUrls.length > 0 && config.durability === undefined
      ? unchosenDurability(redis.state().durability)
      : undefined;
  const unchosen = durability();
  if (unchosen)
    log.warn({ event: "redis.durability_not_chosen" }, `${unchosen.message} ${unchosen.suggestedAction}`);

  return {
    durability,
    redis(): readonly string[] {
      const lostAtMs = dataLoss.lostAt()?.getTime() ?? Number.NEGATIVE_INFINITY;
      const isRecent = clock() - lostAtMs < LOSS_SHOWN_MS;
      const loss = isRecent ? [`Redis lost data, which was noticed at ${formatTimestamp(lostAtMs)}.`] : [];
      return [...loss, ...[durability()].flatMap((warning) => warning?.message ?? [])];
    },
    database(): readonly string[] {
      const problem = writes.problem();
      if (problem === undefined) return [];
      return [`${problem} Deliveries to known channels are accepted, but every change gets a 503.`];
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all([dataLoss[Symbol.asyncDispose](), writes[Symbol.asyncDispose]()]);
    },
  };
}
