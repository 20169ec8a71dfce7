import { sql } from "kysely";
import type { Queryable } from "../database.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Time in ms for which counts are stored by the minute, and then by the hour. */
export const MINUTES_KEPT_MS = 48 * HOUR_MS;
export const HOURS_KEPT_MS = 90 * DAY_MS;
/** Time in ms after which the last write of a process is forgotten. It must exceed any outage of PostgreSQL. */
const WRITES_KEPT_MS = 30 * DAY_MS;
/** Maximum number of rows that one statement moves or deletes. */
const BATCH = 5_000;

/**
 * Moves counts by the minute to counts by the hour, and deletes old ones. Each count is in one of the two tables at any time, so a write
 * that arrives late is moved later. Two gateways may do this at the same time.
 *
 * @throws UnavailableError
 */
export async function ageCounts(
  db: Queryable,
  nowMs: number,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const before = (keptMs: number): Date => new Date(Math.floor((nowMs - keptMs) / HOUR_MS) * HOUR_MS);
  await repeat(signal, () => moveToHours(db, before(MINUTES_KEPT_MS)));
  await repeat(signal, () => deleteOld(db, before(HOURS_KEPT_MS)));
  await db
    .deleteFrom("series")
    .where("lastAt", "<", before(HOURS_KEPT_MS + 2 * DAY_MS))
    .execute();
  await db.deleteFrom("seriesWrites").where("writtenAt", "<", before(WRITES_KEPT_MS)).execute();
}

async function repeat(signal: AbortSignal, batch: () => Promise<number>): Promise<void> {
  let rows = BATCH;
  while (rows === BATCH) {
    signal.throwIfAborted();
    rows = await batch();
  }
}

/** Moves one batch and returns its number of rows. Skips rows that a concurrent write has locked, so that it cannot deadlock. */
async function moveToHours(db: Queryable, before: Date): Promise<number> {
  const { rows } = await sql<{ moved: number }>`
    WITH old AS (
      SELECT ctid FROM series_minutes WHERE minute < ${before} ORDER BY minute LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
    ), moved AS (
      DELETE FROM series_minutes WHERE ctid = ANY (ARRAY (SELECT ctid FROM old)) RETURNING *
    ), added AS (
      INSERT INTO series_hours (series_id, metric, hour, detail, count, buckets)
      SELECT series_id, metric, date_trunc('hour', minute, 'UTC'), detail, sum(count), sum_buckets(buckets)
      FROM moved GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
      ON CONFLICT (series_id, metric, hour, detail) DO UPDATE SET count = series_hours.count + excluded.count,
        buckets = add_buckets(series_hours.buckets, excluded.buckets)
    )
    SELECT count(*) AS moved FROM moved`.execute(db);
  return rows[0]?.moved ?? 0;
}

async function deleteOld(db: Queryable, before: Date): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM series_hours WHERE ctid = ANY (ARRAY (
      SELECT ctid FROM series_hours WHERE hour < ${before} ORDER BY hour LIMIT ${BATCH} FOR UPDATE SKIP LOCKED
    ))`.execute(db);
  return Number(numAffectedRows);
}
