import { sql } from "kysely";
import type { Queryable } from "../database.ts";

/** A count of one series in one minute. */
export interface SeriesCount {
  readonly seriesId: number;
  readonly metric: string;
  readonly minuteMs: number;
  /** The reason of quarantined items, or the status of rejected requests, otherwise empty. */
  readonly detail: string;
  readonly count: number;
  /** Counts of response times by bucket. `undefined` for other metrics. */
  readonly buckets: readonly number[] | undefined;
}

export interface CountsWrite {
  /** Id of the process. Each process has a different id. */
  readonly writer: string;
  /** Number of the write. A write that failed is repeated with its number, because it may have been committed. */
  readonly sequence: number;
  /** Counts, at most one for each series, metric, minute and detail. */
  readonly counts: readonly SeriesCount[];
}

/**
 * Adds counts to those that are stored, in one statement. Does nothing if the write was already committed. The rows are written in a fixed
 * order, so that concurrent writes cannot deadlock. Counts of deleted series are dropped.
 *
 * @throws UnavailableError
 */
export async function writeCounts(db: Queryable, { writer, sequence, counts }: CountsWrite): Promise<void> {
  await sql`
    WITH write AS (
      INSERT INTO series_writes (writer, sequence, written_at) VALUES (${writer}, ${sequence}, now())
      ON CONFLICT (writer) DO UPDATE SET sequence = excluded.sequence, written_at = excluded.written_at
      WHERE series_writes.sequence < excluded.sequence
      RETURNING sequence
    )
    INSERT INTO series_minutes (series_id, metric, minute, detail, count, buckets)
    SELECT series.id, given.metric, to_timestamp(given.minute_ms / 1000.0), given.detail, given.count,
      given.buckets::integer[]
    FROM unnest(
      ${counts.map(({ seriesId }) => seriesId)}::integer[], ${counts.map(({ metric }) => metric)}::text[],
      ${counts.map(({ minuteMs }) => minuteMs)}::bigint[], ${counts.map(({ detail }) => detail)}::text[],
      ${counts.map(({ count }) => count)}::bigint[],
      ${counts.map(({ buckets }) => (buckets === undefined ? null : `{${buckets.join(",")}}`))}::text[]
    ) AS given (series_id, metric, minute_ms, detail, count, buckets)
    JOIN series ON series.id = given.series_id
    CROSS JOIN write
    ORDER BY series.id, given.metric COLLATE "C", given.minute_ms, given.detail COLLATE "C"
    ON CONFLICT (series_id, metric, minute, detail) DO UPDATE SET count = series_minutes.count + excluded.count,
      buckets = add_buckets(series_minutes.buckets, excluded.buckets)`.execute(db);
}
