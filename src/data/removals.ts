import { sql } from "kysely";
import type { ChannelIdentity } from "../event/channel.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { Queryable, Trx } from "./database.ts";

/**
 * Data in Redis that must be removed because a channel or subscription was deleted.
 *
 * - Channel: consumer groups, cursor, dedupe state and quarantine. With `purge`, also the topics, which otherwise stay until
 *   retention has trimmed them.
 * - Subscription: consumer groups, and the set of its topics.
 */
export type Removal =
  | {
      readonly kind: "channel";
      readonly channel: ChannelIdentity;
      readonly topics: readonly string[];
      readonly purge: boolean;
    }
  | { readonly kind: "subscription"; readonly id: string; readonly organizationId: string };

const PURGED_MAX_AGE_SECONDS = 1;

/**
 * Records which data must be deleted from Redis. Uses the transaction that deletes the rows, so that neither a crash nor a Redis
 * outage loses the record.
 */
export async function recordRemovals(trx: Trx, removals: readonly Removal[], nowMs: number): Promise<void> {
  if (removals.length === 0) return;
  const rows = removals.map((removal) => ({
    removal: JSON.stringify(removal),
    createdAt: new Date(nowMs),
  }));
  await trx.insertInto("removals").values(rows).execute();
}

/**
 * Carries out up to `limit` pending removals, oldest first, and deletes the record of each one once `carryOut` has resolved. A
 * removal that fails moves to the end of the list, so that it does not block others.
 *
 * Several gateways can share the work. `carryOut` must be idempotent.
 *
 * @returns the number of completed removals
 * @throws UnavailableError immediately if Redis is unavailable
 * @throws the first other error of `carryOut`, after all removals were tried
 */
export async function settleRemovals(
  db: Queryable,
  carryOut: (removal: Removal) => Promise<void>,
  options: { readonly signal: AbortSignal; readonly limit?: number },
): Promise<number> {
  const { signal, limit = 100 } = options;
  const failures: unknown[] = [];
  const newest = await newestId(db);
  let settled = 0;
  while (settled + failures.length < limit && !signal.aborted) {
    let tried: number | undefined;
    try {
      const found = await db.transaction().execute(async (trx) => {
        const row = await trx
          .selectFrom("removals")
          .select(["id", "removal"])
          .where("id", "<=", newest)
          .orderBy("id")
          .limit(1)
          .forUpdate()
          .skipLocked()
          .executeTakeFirst();
        if (!row) return false;
        tried = row.id;
        await settleOne(trx, row.removal as Removal, carryOut);
        await trx.deleteFrom("removals").where("id", "=", row.id).execute();
        return true;
      });
      if (!found) break;
      settled++;
    } catch (error) {
      if (tried === undefined) throw error;
      await putLast(db, tried);
      if (error instanceof UnavailableError) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return settled;
}

async function settleOne(
  trx: Trx,
  outstanding: Removal,
  carryOut: (removal: Removal) => Promise<void>,
): Promise<void> {
  const removal = await withoutTakenTopics(trx, outstanding);
  await carryOut(removal);
  if (removal.kind !== "channel" || !removal.purge || removal.topics.length === 0) return;
  // Another gateway may still publish to the topics for some seconds. Keep their rows, with a short retention, so that those events are
  // deleted later.
  await trx
    .updateTable("topics")
    .set({ maxAgeSeconds: PURGED_MAX_AGE_SECONDS })
    .where("topic", "in", removal.topics)
    .execute();
}

async function newestId(db: Queryable): Promise<number> {
  const { newest } = await db
    .selectFrom("removals")
    .select(({ fn }) => fn.max("id").as("newest"))
    .executeTakeFirstOrThrow();
  return newest ?? 0;
}

/** Moves a failed removal to the end of the list by giving it a new id. The current call ignores ids that are newer than its start. */
async function putLast(db: Queryable, id: number): Promise<void> {
  await sql`UPDATE removals SET id = DEFAULT WHERE id = ${id}`.execute(db);
}

/**
 * Returns the removal without topics that a new channel with the same uid now uses. Locks the other topics, so that no channel can
 * use them until their data is removed.
 */
async function withoutTakenTopics(trx: Trx, removal: Removal): Promise<Removal> {
  if (removal.kind !== "channel" || removal.topics.length === 0) return removal;
  const rows = await trx
    .selectFrom("topics")
    .select("topic")
    .where("topic", "in", removal.topics)
    .where("channelNumber", "=", removal.channel.number)
    .forUpdate()
    .execute();
  return { ...removal, topics: rows.map(({ topic }) => topic) };
}
