import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

export interface TopicLimit {
  /** Maximum size in bytes. `undefined` when there is no limit. */
  readonly bytes: number | undefined;
  /** Action when the limit is reached: `refuse` rejects new deliveries. `trim` deletes the oldest events, even unread ones. */
  readonly overLimit: Row<"organizationLimits">["overLimit"];
}

/** Returns the topic storage limit of an organization, or the default limit. The operator's organization has no default limit. */
export type TopicLimitOf = (organizationId: string) => TopicLimit;

/** Bytes of topic storage by organization. `isWhole` is false if the size of at least one topic is unknown. */
export interface HeldBytes {
  readonly held: ReadonlyMap<string, number>;
  readonly isWhole: boolean;
}

export interface DefaultTopicBytes {
  readonly bytes: number;
  /** True if the default is computed from the `maxmemory` setting of Redis, false if it is configured. */
  readonly isDerived: boolean;
}

/** Fixed default limit in earlier versions, in bytes. Newer versions compute the default from the `maxmemory` setting of Redis. */
export const MOST_DEFAULT_BYTES = 2 * 1024 ** 3;

/**
 * Reads the topic limits.
 *
 * When limits apply for the first time, some organizations may already exceed the default. Each of them gets its current size as
 * its own limit, so that an upgrade never blocks an organization. The same happens if a computed default shrinks because Redis has
 * less memory. These limits are permanent, so they are only set once the sizes of all topics are known.
 *
 * @returns `undefined` until the sizes of all topics are known. No limits apply until then
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
