import { sql } from "kysely";
import type { Queryable } from "../database.ts";

/**
 * The most that topics of one organization may hold, in bytes: the default, or its own limit; undefined: as much as they like, which
 * is so for the operator's.
 */
export type TopicBytesLimit = (organizationId: string) => number | undefined;

/** What organizations hold, in bytes; not whole where a topic is missing in a sum. */
export interface HeldBytes {
  readonly held: ReadonlyMap<string, number>;
  readonly isWhole: boolean;
}

/**
 * Reads the limits. The first gateway that knows limits gives each organization that is over the default what it holds then: none is
 * cut off by an upgrade. That is done once, for good, so it waits for whole sums; until then there are no limits: undefined.
 */
export async function readTopicLimits(
  db: Queryable,
  defaultBytes: number,
  { held, isWhole }: HeldBytes,
): Promise<TopicBytesLimit | undefined> {
  const cluster = await db
    .selectFrom("cluster")
    .select(["organizationId", "limitedSince"])
    .executeTakeFirstOrThrow();
  if (cluster.limitedSince === null) {
    if (!isWhole) return undefined;
    for (const [organizationId, bytes] of held) {
      if (bytes <= defaultBytes) continue;
      await sql`
        INSERT INTO organization_limits (organization_id, topic_bytes)
        SELECT id, ${bytes} FROM organizations WHERE id = ${organizationId}
        ON CONFLICT DO NOTHING`.execute(db);
    }
    await db.updateTable("cluster").set({ limitedSince: sql`clock_timestamp()` }).execute();
  }
  const rows = await db.selectFrom("organizationLimits").selectAll().execute();
  const own = new Map(rows.map(({ organizationId, topicBytes }) => [organizationId, topicBytes]));
  return (id) => (id === cluster.organizationId ? undefined : (own.get(id) ?? defaultBytes));
}
