import { sql } from "kysely";
import type { ChannelIdentity } from "../event/channel.ts";
import { UnavailableError } from "../lib/errors.ts";
import type { Queryable, Trx } from "./database.ts";

/**
 * Left behind on the bus by a deleted row. `channel`: groups, cursor, dedupe and quarantine of the channel, and with
 * `purge` its topics, which else stay until retention. `subscription`: its groups and its set of topics.
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

/** Notes what is to be cleared away, in the transaction that deletes: a crash or an absent Redis loses none of it. */
export async function recordRemovals(trx: Trx, removals: readonly Removal[], nowMs: number): Promise<void> {
  if (removals.length === 0) return;
  const rows = removals.map((removal) => ({
    removal: JSON.stringify(removal),
    createdAt: new Date(nowMs),
  }));
  await trx.insertInto("removals").values(rows).execute();
}

/**
 * Carries out up to `limit` outstanding removals, oldest first, and forgets each once `carryOut` has resolved; it must bear
 * being called twice with the same. Several gateways share the work. Answers how many were carried out.
 *
 * One that fails stays, behind all others: whatever is wrong with it, they pass. When the bus is away the rest waits with it.
 *
 * @throws UnavailableError at once, or in the end what `carryOut` first threw otherwise.
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
  // Another gateway may publish for some seconds yet: the rows stay, so that what it appends is swept away at once.
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

/** Gives the removal a new number; those of one call are no newer than its beginning, so that it is tried once in each. */
async function putLast(db: Queryable, id: number): Promise<void> {
  await sql`UPDATE removals SET id = DEFAULT WHERE id = ${id}`.execute(db);
}

/**
 * The removal without topics that a new channel of the same uid has taken over. The others are locked: one that takes them
 * over now waits until they are cleared, and loses nothing.
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
