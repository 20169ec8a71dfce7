import { sql } from "kysely";
import { createId } from "../../lib/ids.ts";
import type { Queryable } from "../database.ts";
import type { Row } from "../tables.ts";

export type NewDeadLetter = Omit<Row<"deadLetters">, "id" | "organizationId" | "createdAt">;

/** Maximum number of dead letters per subscription. Each dead letter above it replaces the oldest one. */
const MOST_LETTERS = 10_000;
const KEPT_DAYS = 30;
const EXPIRED_AT_ONCE = 1_000;

/** Stores a dead letter, or updates the existing one for the same event. Does nothing if the subscription or the event was deleted. */
export async function insertDeadLetter(db: Queryable, letter: NewDeadLetter, nowMs: number): Promise<void> {
  const { subscriptionId, fields, attempts, ...others } = letter;
  await sql`
    INSERT INTO dead_letters (id, subscription_id, organization_id, topic, entry_id, type, fields, attempts, reason, created_at)
    SELECT ${createId("dl", nowMs)}, s.id, s.organization_id, ${others.topic}, ${others.entryId}, ${others.type},
      ${JSON.stringify(fields)}::json, ${JSON.stringify(attempts)}::json, ${others.reason}, ${new Date(nowMs)}
    FROM subscriptions AS s WHERE s.id = ${subscriptionId} AND NOT EXISTS (
      SELECT FROM deleted_events AS e WHERE e.topic = ${others.topic} AND e.entry_id = ${others.entryId}
    )
    ON CONFLICT (subscription_id, topic, entry_id)
    DO UPDATE SET attempts = excluded.attempts, reason = excluded.reason, created_at = excluded.created_at`.execute(
    db,
  );
  await sql`
    DELETE FROM dead_letters WHERE id IN (
      SELECT id FROM dead_letters WHERE subscription_id = ${subscriptionId}
      ORDER BY created_at DESC, id DESC OFFSET ${MOST_LETTERS}
    )`.execute(db);
}

/** Deletes dead letters that are older than 30 days. Deletes them in small batches. */
export async function expireDeadLetters(
  db: Queryable,
  nowMs: number,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const before = new Date(nowMs - KEPT_DAYS * 86_400_000);
  while (!signal.aborted) {
    const { numDeletedRows } = await db
      .deleteFrom("deadLetters")
      .where("id", "in", (eb) =>
        eb.selectFrom("deadLetters").select("id").where("createdAt", "<", before).limit(EXPIRED_AT_ONCE),
      )
      .executeTakeFirst();
    if (numDeletedRows < BigInt(EXPIRED_AT_ONCE)) return;
  }
}

/**
 * Counts the dead letters of each subscription. The result leaves out subscriptions without dead letters.
 *
 * @param subscriptionIds counts only these subscriptions. Defaults to all
 */
export async function countDeadLetters(
  db: Queryable,
  subscriptionIds?: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (subscriptionIds?.length === 0) return new Map();
  const rows = await db
    .selectFrom("deadLetters")
    .select(({ fn }) => ["subscriptionId", fn.countAll<number>().as("total")])
    .$if(subscriptionIds !== undefined, (query) => query.where("subscriptionId", "in", subscriptionIds ?? []))
    .groupBy("subscriptionId")
    .execute();
  return new Map(rows.map(({ subscriptionId, total }) => [subscriptionId, total]));
}

export async function isDeletedEvent(db: Queryable, topic: string, entryId: string): Promise<boolean> {
  const row = await db
    .selectFrom("deletedEvents")
    .select("entryId")
    .where((eb) => eb.and({ topic, entryId }))
    .executeTakeFirst();
  return row !== undefined;
}
