import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

/** What the topics of one organization may hold. */
export interface TopicLimit {
  /** In bytes; undefined: as much as they like. */
  readonly bytes: number | undefined;
  /** When they hold more: new deliveries are refused, or the oldest events go, be they read or not. */
  readonly overLimit: Row<"organizationLimits">["overLimit"];
}

/** By the default, or its own limit; the operator's has none by default. */
export type TopicLimitOf = (organizationId: string) => TopicLimit;

/** What organizations hold, in bytes; not whole where a topic is missing in a sum. */
export interface HeldBytes {
  readonly held: ReadonlyMap<string, number>;
  readonly isWhole: boolean;
}

export interface DefaultTopicBytes {
  readonly bytes: number;
  /** It follows from the memory of Redis: nobody has asked for just that. */
  readonly isDerived: boolean;
}

/** The default of programs that did not look at Redis' memory. */
export const MOST_DEFAULT_BYTES = 2 * 1024 ** 3;

/**
 * Reads the limits. The first gateway that knows a limit gives each organization that is over the default what it holds then: none is
 * cut off by an upgrade, nor by a default that follows from less memory than before. That is done once, for good, so it waits for
 * whole sums; until then there are no limits: undefined.
 */
export async function readTopicLimits(
  db: Queryable,
  { bytes: defaultBytes, isDerived }: DefaultTopicBytes,
  { held, isWhole }: HeldBytes,
): Promise<TopicLimitOf | undefined> {
  const cluster = await db
    .selectFrom("cluster")
    .select(["organizationId", "limitedSince", "limitedToBytes"])
    .executeTakeFirstOrThrow();
  const { limitedSince, limitedToBytes } = cluster;
  const isNew = limitedSince === null;
  if (isNew || (isDerived && defaultBytes < (limitedToBytes ?? MOST_DEFAULT_BYTES))) {
    if (!isWhole) return undefined;
    for (const [organizationId, bytes] of held) {
      if (bytes <= defaultBytes) continue;
      await sql`
        INSERT INTO organization_limits (organization_id, topic_bytes)
        SELECT id, ${bytes} FROM organizations WHERE id = ${organizationId}
        ON CONFLICT (organization_id) DO UPDATE SET topic_bytes = excluded.topic_bytes
        WHERE organization_limits.topic_bytes IS NULL`.execute(db);
    }
    await db
      .updateTable("cluster")
      .set({ limitedSince: sql`coalesce(limited_since, clock_timestamp())`, limitedToBytes: defaultBytes })
      .execute();
  }
  const rows = await db
    .selectFrom("organizationLimits")
    .select(["organizationId", "topicBytes", "overLimit"])
    .execute();
  const own = new Map(rows.map((row) => [row.organizationId, row]));
  return (id) => {
    const row = own.get(id);
    const ofAll = id === cluster.organizationId ? undefined : defaultBytes;
    return { bytes: row?.topicBytes ?? ofAll, overLimit: row?.overLimit ?? "refuse" };
  };
}
