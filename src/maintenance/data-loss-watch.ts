import type { RedisMarker } from "../bus/connection/redis-marker.ts";
import type { Queryable, Trx } from "../data/database.ts";
import type { Clock } from "../lib/clock.ts";
import { createId } from "../lib/ids.ts";
import { startLoop } from "../lib/loop.ts";
import type { Log } from "../log.ts";

export interface DataLossDeps {
  readonly db: Queryable;
  readonly marker: RedisMarker;
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs?: number;
  /** Maximum time in ms by which Redis may go back, for example after a failover, before its newest writes count as lost. */
  readonly toleratedMs?: number;
}

export type DataLossWatch = ReturnType<typeof startDataLossWatch>;

const EVERY_MS = 5_000;
const TOLERATED_MS = 10_000;

/**
 * Starts to check whether Redis has lost data: whether it came back empty, without its newest writes, or is another server than before.
 * The gateway that notices the loss first logs it and stores its time. Channels that are pushed have no other sign of such a loss.
 */
export function startDataLossWatch(deps: DataLossDeps) {
  const { db, marker, clock, log, everyMs = EVERY_MS, toleratedMs = TOLERATED_MS } = deps;
  let known: string | undefined;
  let lostAt: Date | null | undefined;
  /** Largest step back of the marker `id` that was not yet compared with the database. */
  let stepBack: { readonly id: string | undefined; readonly ms: number } | undefined;

  async function readId(): Promise<string | undefined> {
    const { id, lostMs } = await marker.check(known !== undefined);
    if (lostMs > Math.max(toleratedMs, stepBack?.ms ?? 0)) stepBack = { id, ms: lostMs };
    return id;
  }

  async function check(): Promise<void> {
    const id = await readId();
    if (known !== undefined && id === known && stepBack === undefined) return;
    const compared = await db.transaction().execute(compare);
    if (compared.loss) {
      const facts =
        compared.loss === "newest" ? { lostSeconds: Math.round((stepBack?.ms ?? 0) / 1_000) } : {};
      log.error({ event: "redis.data_lost", ...facts }, LOSSES[compared.loss]);
    }
    known = compared.id;
    lostAt = compared.lostAt;
    stepBack = undefined;
  }

  /** Compares the marker with the database, and replaces both after a loss. Holds a lock, so that one gateway reports each loss. */
  async function compare(trx: Trx) {
    const { redisMarker: stored, dataLostAt } = await trx
      .selectFrom("cluster")
      .select(["redisMarker", "dataLostAt"])
      .forUpdate()
      .executeTakeFirstOrThrow();
    const found = await readId();
    if (stored === null) {
      const id = found ?? createId("mark", clock());
      if (found === undefined) await marker.replace(id);
      await trx.updateTable("cluster").set({ redisMarker: id }).execute();
      return { id, lostAt: dataLostAt };
    }
    // If another gateway has already reported this step back, it has replaced the marker.
    const loss = found !== stored ? "all" : stepBack?.id === stored ? "newest" : undefined;
    if (loss === undefined) return { id: stored, lostAt: dataLostAt };
    const id = createId("mark", clock());
    await marker.replace(id);
    const lostAt = new Date(clock());
    await trx.updateTable("cluster").set({ redisMarker: id, dataLostAt: lostAt }).execute();
    return { id, lostAt, loss } as const;
  }

  const loop = startLoop({
    step: check,
    everyMs,
    onFailing: (err) =>
      log.debug({ event: "redis.marker_not_checked", err }, "the marker in Redis cannot be checked"),
  });
  return {
    /** Time of the last loss. `null` if there was none, `undefined` before the first check. */
    lostAt: () => lostAt,
    [Symbol.asyncDispose]: loop[Symbol.asyncDispose],
  };
}

const LOSSES = {
  all: "Redis came back without its data, or is another server than before. Unread events, positions of sources and remembered ids are lost. Restore a backup if you have one, and turn on the append-only file of Redis",
  newest:
    "Redis came back without its newest writes, so acknowledged events may be lost. Turn on the append-only file of Redis",
} as const;
