import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import { OTHER } from "./series-names.ts";

/** Published events of an app. */
export interface AppActivity {
  /**
   * Start of the last minute with a published event, or of the hour if the minute is no longer stored. Ignores events that are counted
   * under `other`.
   */
  readonly lastAt: Date | null;
  /** Number of events published since the given time. `undefined` if `other` has events since then, which can be of any app. */
  readonly published: number | undefined;
}

const NONE = { lastAt: null, published: 0 } as const;

/**
 * Reads the activity of some apps with one query. It reads one row per series for the last minute, and one per minute for the counts.
 *
 * @throws UnavailableError
 */
export async function readAppActivity(
  db: Queryable,
  organizationId: string,
  appIds: readonly string[],
  sinceMs: number,
): Promise<(appId: string) => AppActivity> {
  const last = (table: "series_minutes" | "series_hours", at: string) => sql`LATERAL (
    SELECT ${sql.ref(at)} AS at FROM ${sql.table(table)}
    WHERE series_id = series.id AND metric = 'published' ORDER BY ${sql.ref(at)} DESC LIMIT 1)`;
  const { rows } = await sql<{ appId: string; lastAt: Date | null; published: number }>`
    SELECT series.app_id AS "appId", max(greatest(minutes.at, hours.at)) AS "lastAt",
      coalesce(sum(recent.count), 0)::bigint AS published
    FROM series
    LEFT JOIN ${last("series_minutes", "minute")} AS minutes ON true
    LEFT JOIN ${last("series_hours", "hour")} AS hours ON true
    LEFT JOIN LATERAL (
      SELECT sum(count) AS count FROM series_minutes
      WHERE series_id = series.id AND metric = 'published' AND minute >= ${new Date(sinceMs)}
    ) AS recent ON true
    WHERE series.organization_id = ${organizationId} AND series.app_id = ANY (${[...appIds, OTHER]}::text[])
    GROUP BY 1`.execute(db);
  const apps = new Map(rows.map(({ appId, ...activity }) => [appId, activity]));
  const hasOthers = (apps.get(OTHER)?.published ?? 0) > 0;
  return (appId) => {
    const known = apps.get(appId) ?? NONE;
    return hasOthers ? { ...known, published: undefined } : known;
  };
}
