import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

/** Storage limit for the topics of one organization. */
export interface TopicLimit {
  /** Maximum size in bytes. `undefined` when there is no limit. */
  readonly bytes: number | undefined;
  /** Action above the limit: reject new deliveries, or trim the oldest events even if they are unread. */
  readonly overLimit: Row<"organizationLimits">["overLimit"];
}

/** Returns the limit of an organization: its own or the default. The operator's organization has no limit by default. */
export type TopicLimitOf = (organizationId: string) => TopicLimit;

/** Bytes stored by each organization. `isWhole` is false if a sum lacks a topic. */
export interface HeldBytes {
  readonly held: ReadonlyMap<string, number>;
  readonly isWhole: boolean;
}

export interface DefaultTopicBytes {
  readonly bytes: number;
  /** Whether the value was derived from the memory of Redis instead of configured. */
  readonly isDerived: boolean;
}

/** Fixed default of earlier versions, which did not derive it from the memory of Redis. */
export const MOST_DEFAULT_BYTES = 2 * 1024 ** 3;

/**
 * Reads the topic limits.
 *
 * An organization that is over the default on first use gets its current size as its own limit, so that an upgrade never blocks it.
 * The same happens when a derived default shrinks because Redis has less memory. This step is permanent, so it waits for complete sums.
 *
 * @returns `undefined` until the sums are complete; no limits apply until then
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
