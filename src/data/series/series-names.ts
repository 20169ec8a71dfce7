import { sql } from "kysely";
import type { Queryable } from "../database.ts";

/** Name of a series. `type` is empty for the counts of a channel that have no type. */
export interface SeriesName {
  readonly organizationId: string;
  readonly appId: string;
  readonly channel: string;
  readonly type: string;
}

/** Maximum number of series of an organization that were counted within a day. All others are counted together. */
export const MAX_SERIES = 2_000;
/** App, channel and type of the series for all counts beyond `MAX_SERIES`. No app has this id. */
export const OTHER = "other";

const DAY = "24 hours";
/** Time in ms after which a gateway looks a series up again. */
const KNOWN_FOR_MS = 3_600_000;
/** Maximum number of series in memory. */
const MAX_KNOWN = 50_000;

export const formatSeriesKey = ({ organizationId, appId, channel, type }: SeriesName): string =>
  `${organizationId} ${appId} ${channel} ${type}`;

export const toOther = (organizationId: string): SeriesName => ({
  organizationId,
  appId: OTHER,
  channel: OTHER,
  type: OTHER,
});

/** Finds the ids of series, and creates those that are missing. */
export interface SeriesIds {
  /**
   * Returns the id of each series by its key. Series beyond the limit have the id of their organization's series for all others.
   * Series of deleted organizations are missing.
   *
   * @throws UnavailableError
   */
  readonly resolve: (names: ReadonlyMap<string, SeriesName>) => Promise<ReadonlyMap<string, number>>;
}

/** @param nowMs monotonic clock, in ms */
export function createSeriesIds(db: Queryable, nowMs = () => performance.now()): SeriesIds {
  let known = new Map<string, number>();
  let sinceMs = nowMs();

  async function add(names: readonly SeriesName[]): Promise<void> {
    const rows = await db.transaction().execute(async (trx) => {
      // Lets only one gateway add series at a time. Concurrent writers would not see each other's series, and could exceed the limit.
      await sql`SELECT pg_advisory_xact_lock(hashtextextended('series', 0))`.execute(trx);
      return (await placeSeries(names).execute(trx)).rows;
    });
    const added = new Map(rows.map(({ id, ...name }) => [formatSeriesKey(name), id]));
    for (const name of names) {
      const key = formatSeriesKey(name);
      const id = added.get(key) ?? added.get(formatSeriesKey(toOther(name.organizationId)));
      if (id !== undefined) known.set(key, id);
    }
  }

  return {
    async resolve(names) {
      if (nowMs() - sinceMs > KNOWN_FOR_MS || known.size > MAX_KNOWN) {
        known = new Map();
        sinceMs = nowMs();
      }
      const missing = [...names].flatMap(([key, name]) => (known.has(key) ? [] : [name]));
      if (missing.length > 0) await add(missing);
      return known;
    },
  };
}

/**
 * Builds the statement that creates series or marks them as counted now. Channels get their places before types. Series of deleted
 * organizations are left out.
 */
const placeSeries = (names: readonly SeriesName[]) => sql<SeriesName & { id: number }>`
  WITH given AS (
    SELECT given.* FROM unnest(
      ${names.map(({ organizationId }) => organizationId)}::text[], ${names.map(({ appId }) => appId)}::text[],
      ${names.map(({ channel }) => channel)}::text[], ${names.map(({ type }) => type)}::text[]
    ) AS given (organization_id, app_id, channel, type)
    JOIN organizations ON organizations.id = given.organization_id
  ), held AS (
    SELECT organization_id, count(*) AS places FROM series
    WHERE organization_id IN (SELECT organization_id FROM given) AND app_id <> ${OTHER}
      AND last_at > now() - interval '${sql.raw(DAY)}'
    GROUP BY organization_id
  ), marked AS (
    SELECT given.*, given.app_id = ${OTHER} OR EXISTS (
      SELECT FROM series AS known
      WHERE (known.organization_id, known.app_id, known.channel, known.type)
        = (given.organization_id, given.app_id, given.channel, given.type)
        AND known.last_at > now() - interval '${sql.raw(DAY)}'
    ) AS has_place
    FROM given
  ), placed AS (
    SELECT marked.*, has_place OR coalesce(held.places, 0) + row_number() OVER (
      PARTITION BY organization_id, has_place ORDER BY type <> '', app_id, channel, type
    ) <= ${MAX_SERIES} AS fits
    FROM marked LEFT JOIN held USING (organization_id)
  )
  INSERT INTO series (organization_id, app_id, channel, type, last_at)
  SELECT DISTINCT organization_id, CASE WHEN fits THEN app_id ELSE ${OTHER} END,
    CASE WHEN fits THEN channel ELSE ${OTHER} END, CASE WHEN fits THEN type ELSE ${OTHER} END, now()
  FROM placed ORDER BY 1, 2, 3, 4
  ON CONFLICT (organization_id, app_id, channel, type) DO UPDATE SET last_at = excluded.last_at
  RETURNING id, organization_id AS "organizationId", app_id AS "appId", channel, type`;
