import { sql } from "kysely";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { hashOfAddress, sealAddress } from "./address-columns.ts";

const BATCH = 500;

/**
 * Seals the channel addresses that earlier versions stored in plain text, and deletes the plain text. Afterwards, earlier versions store
 * no plain-text addresses, and versions that know only these fail to start. Does nothing if there are none.
 */
export async function sealPlainAddresses(
  trx: Trx,
  openKeyring: (db: Queryable) => Promise<Keyring>,
): Promise<void> {
  const { rows } = await sql<{ arePlain: boolean }>`
    SELECT plain_addresses OR EXISTS (SELECT FROM channels WHERE id IS NOT NULL)
      OR EXISTS (SELECT FROM channel_addresses WHERE id IS NOT NULL) AS are_plain
    FROM cluster`.execute(trx);
  if (rows[0]?.arePlain !== true) return;
  const keyring = await openKeyring(trx);
  await trx.updateTable("cluster").set({ plainAddresses: false }).execute();
  // Wait for transactions that are writing an address. Later ones already see that plain addresses are turned off.
  await sql`LOCK TABLE channels, channel_addresses IN SHARE ROW EXCLUSIVE MODE`.execute(trx);
  await inBatches(async () => {
    const { rows } = await sql<{ number: number; id: string }>`
      SELECT number, id FROM channels WHERE address_hash IS NULL AND id IS NOT NULL
      ORDER BY number LIMIT ${BATCH}`.execute(trx);
    const sealed = rows.map(({ number, id }) => sealAddress(keyring, number, id));
    await sql`
      UPDATE channels AS c SET address_hash = v.hash, sealed_address = v.sealed
      FROM unnest(${rows.map(({ number }) => number)}::bigint[],
        ${sealed.map(({ addressHash }) => addressHash)}::bytea[],
        ${sealed.map(({ sealedAddress }) => sealedAddress)}::text[]) AS v(number, hash, sealed)
      WHERE c.number = v.number`.execute(trx);
    return rows.length;
  });
  await inBatches(async () => {
    const { rows } = await sql<{ id: string }>`
      SELECT id FROM channel_addresses WHERE address_hash IS NULL AND id IS NOT NULL LIMIT ${BATCH}`.execute(
      trx,
    );
    const ids = rows.map(({ id }) => id);
    await sql`
      UPDATE channel_addresses AS c SET address_hash = v.hash
      FROM unnest(${ids}::text[], ${ids.map((id) => hashOfAddress(keyring, id))}::bytea[]) AS v(id, hash)
      WHERE c.id = v.id`.execute(trx);
    return rows.length;
  });
  await sql`UPDATE channels SET id = NULL WHERE id IS NOT NULL`.execute(trx);
  await sql`UPDATE channel_addresses SET id = NULL WHERE id IS NOT NULL`.execute(trx);
}

/** Repeats `next` until it processes less than a full batch. */
async function inBatches(next: () => Promise<number>): Promise<void> {
  while ((await next()) === BATCH);
}
