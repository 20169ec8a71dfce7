import type { ChannelIdentity } from "../event/channel.ts";
import type { Queryable, Trx } from "./database.ts";

/**
 * What a deleted row leaves behind on the bus. `channel`: groups, cursor, dedupe and quarantine of the channel, and with
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
 * @throws UnavailableError, or what `carryOut` throws: the removal stays for the next call.
 */
export async function settleRemovals(
  db: Queryable,
  carryOut: (removal: Removal) => Promise<void>,
  options: { readonly signal: AbortSignal; readonly limit?: number },
): Promise<number> {
  const { signal, limit = 100 } = options;
  let settled = 0;
  while (settled < limit && !signal.aborted) {
    const found = await db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom("removals")
        .select(["id", "removal"])
        .orderBy("id")
        .limit(1)
        .forUpdate()
        .skipLocked()
        .executeTakeFirst();
      if (!row) return false;
      const removal = await withoutTakenTopics(trx, row.removal as Removal);
      await carryOut(removal);
      if (removal.kind === "channel" && removal.purge && removal.topics.length > 0) {
        // Another gateway may publish for some seconds yet: the rows stay, so that what it appends is swept away at once.
        await trx
          .updateTable("topics")
          .set({ maxAgeSeconds: PURGED_MAX_AGE_SECONDS })
          .where("topic", "in", removal.topics)
          .execute();
      }
      await trx.deleteFrom("removals").where("id", "=", row.id).execute();
      return true;
    });
    if (!found) break;
    settled++;
  }
  return settled;
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
