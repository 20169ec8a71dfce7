import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

/** Storage limit for the topics of one organization. */
export interface TopicLimit {
  /** Maximum size in bytes. `undefined` when there is no limit. */
  readonly bytes: number | undefined;
  /** Action above the limit: `refuse` rejects new deliveries, and `trim` deletes the oldest events even if they are unread. */
  readonly overLimit: Row<"organizationLimits">["overLimit"];
}

/** Returns the limit of an organization: its own or the default. The operator's organization has no limit by default. */
export type TopicLimitOf = (organizationId: string) => TopicLimit;

/** Bytes stored by each organization. `isWhole` is false if the size of a topic is missing from a sum. */
export interface HeldBytes {
  readonly held: ReadonlyMap<string, number>;
  readonly isWhole: boolean;
}

export interface DefaultTopicBytes {
  readonly bytes: number;
  /** Whether this limit is computed from Redis `maxmemory` rather than configured. */
  readonly isDerived: boolean;
}

/** Default limit of earlier versions in bytes. It was fixed instead of computed from Redis `maxmemory`. */
export const MOST_DEFAULT_BYTES = 2 * 1024 ** 3;

/**
 * Reads the topic limits.
 *
 * If an organization is over the default when limits are first applied, its current size becomes its own limit. So an upgrade never blocks
 * an organization. The same happens when a computed default shrinks because Redis has less memory. This step is permanent, so it waits for
 * complete sums.
 *
 * @returns `undefined` while the step above waits for complete sums. No limits apply until then.
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
