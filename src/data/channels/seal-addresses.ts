import { type RawBuilder, sql } from "kysely";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { hashOfAddress, sealAddress } from "./address-columns.ts";

const BATCH = 500;

/** Seals and hashes all addresses that gateways of earlier versions stored in plain text. Returns their number. */
export async function sealAddresses(db: Queryable, keyring: Keyring): Promise<number> {
  const present = await inBatches(async () => {
    const rows = await db
      .selectFrom("channels")
      .select(["number", "id"])
      .where("addressHash", "is", null)
      .where("id", "is not", null)
      .orderBy("number")
      .limit(BATCH)
      .execute();
    const sealed = rows.map(({ number, id }) => sealAddress(keyring, number, id ?? ""));
    await update(
      db,
      sql`UPDATE channels AS c SET address_hash = v.hash, sealed_address = v.sealed
        FROM unnest(${rows.map(({ number }) => number)}::bigint[], ${rows.map(({ id }) => id)}::text[],
          ${sealed.map(({ addressHash }) => addressHash)}::bytea[],
          ${sealed.map(({ sealedAddress }) => sealedAddress)}::text[]) AS v(number, id, hash, sealed)
        WHERE c.number = v.number AND c.id = v.id`,
    );
    return rows.length;
  });
  const former = await inBatches(async () => {
    const rows = await db
      .selectFrom("channelAddresses")
      .select("id")
      .where("addressHash", "is", null)
      .where("id", "is not", null)
      .limit(BATCH)
      .execute();
    const ids = rows.map(({ id }) => id ?? "");
    await update(
      db,
      sql`UPDATE channel_addresses AS c SET address_hash = v.hash
        FROM unnest(${ids}::text[], ${ids.map((id) => hashOfAddress(keyring, id))}::bytea[]) AS v(id, hash)
        WHERE c.id = v.id`,
    );
    return rows.length;
  });
  return present + former;
}

/**
 * Stops storing addresses in plain text. Gateways of earlier versions then fail to start, and those still running can no longer
 * find channels.
 */
export async function endPlainAddresses(trx: Trx, keyring: Keyring): Promise<void> {
  const ended = await trx
    .updateTable("cluster")
    .set({ plainAddresses: false })
    .where("plainAddresses", "=", true)
    .returning("singleton")
    .executeTakeFirst();
  if (!ended) return;
  // Wait for transactions that are writing an address. Later ones already see that plain addresses are turned off.
  await sql`LOCK TABLE channels, channel_addresses IN SHARE ROW EXCLUSIVE MODE`.execute(trx);
  await sealAddresses(trx, keyring);
  await trx.updateTable("channels").set({ id: null }).where("id", "is not", null).execute();
  await trx.updateTable("channelAddresses").set({ id: null }).where("id", "is not", null).execute();
}

/** Repeats `next` until it processes less than a full batch. Returns the total number of processed rows. */
async function inBatches(next: () => Promise<number>): Promise<number> {
  for (let all = 0; ; ) {
    const done = await next();
    all += done;
    if (done < BATCH) return all;
  }
}

const update = (db: Queryable, statement: RawBuilder<unknown>) => statement.execute(db);
