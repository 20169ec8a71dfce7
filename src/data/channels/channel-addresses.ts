import { sql } from "kysely";
import { createChannelId } from "../../lib/secrets/channel-id.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { requestAction } from "../registrations/registrations.ts";
import type { ChannelRow } from "../tables.ts";
import { hasAddress, hashOfAddress, openAddress, sealAddress } from "./address-columns.ts";

/** Maximum number of former addresses of a channel that are still valid. */
export const MAX_FORMER_ADDRESSES = 10;

export interface Rotation {
  /** Maximum time in seconds for which former addresses stay valid. 0 invalidates all of them immediately. */
  readonly graceSeconds: number;
  readonly nowMs: number;
}

/**
 * Gives a channel a new address. The old one becomes a former address.
 *
 * @param row row of the channel, locked by the transaction
 * @returns `undefined` if more than `MAX_FORMER_ADDRESSES` would be valid; the caller must then roll the transaction back
 */
export async function rotateAddress(
  trx: Trx,
  keyring: Keyring,
  row: ChannelRow,
  { graceSeconds, nowMs }: Rotation,
): Promise<ChannelRow | undefined> {
  const former = openAddress(keyring, row);
  const address = createChannelId(keyring.channelIdKey);
  const endsAt = sql<Date>`clock_timestamp() + make_interval(secs => ${graceSeconds})`;
  const ofChannel = trx.deleteFrom("channelAddresses").where("channelNumber", "=", row.number);
  if (graceSeconds === 0) {
    await ofChannel.execute();
  } else {
    await ofChannel.where("expiresAt", "<=", sql<Date>`clock_timestamp()`).execute();
    await trx
      .updateTable("channelAddresses")
      .set({ expiresAt: sql`LEAST(expires_at, ${endsAt})` })
      .where("channelNumber", "=", row.number)
      .execute();
    await trx
      .insertInto("channelAddresses")
      .values({
        addressHash: hashOfAddress(keyring, former),
        channelNumber: row.number,
        createdAt: new Date(nowMs),
        expiresAt: endsAt,
      })
      .execute();
    const { count } = await trx
      .selectFrom("channelAddresses")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("channelNumber", "=", row.number)
      .executeTakeFirstOrThrow();
    if (count > MAX_FORMER_ADDRESSES) return undefined;
  }
  await recordChange(trx, { kind: "channel", key: String(row.number) });
  await requestAction(trx, row.number, nowMs);
  return trx
    .updateTable("channels")
    .set({
      ...sealAddress(keyring, row.number, address),
      version: row.version + 1,
      updatedAt: new Date(nowMs),
    })
    .where("number", "=", row.number)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Extends the validity of former addresses, because a provider still has them. Addresses that were ended stay invalid. */
export async function extendFormerAddresses(
  db: Queryable,
  keyring: Keyring,
  {
    channelNumber,
    addresses,
    leftMs,
  }: { readonly channelNumber: number; readonly addresses: readonly string[]; readonly leftMs: number },
): Promise<void> {
  const endsAt = sql<Date>`clock_timestamp() + make_interval(secs => ${leftMs / 1_000})`;
  const hashes = addresses.map((address) => hashOfAddress(keyring, address));
  await db.transaction().execute(async (trx) => {
    const extended = await trx
      .updateTable("channelAddresses")
      .set({ expiresAt: endsAt })
      .where("channelNumber", "=", channelNumber)
      .where("addressHash", "in", hashes)
      .where("expiresAt", "<", endsAt)
      .returning("channelNumber")
      .executeTakeFirst();
    if (extended) await recordChange(trx, { kind: "channel", key: String(channelNumber) });
  });
}

/**
 * Finds the channel to which a former address belongs, and the time in ms for which the address stays valid. Returns `undefined`
 * if the address is unknown or no longer valid.
 */
export async function findFormerAddress(
  db: Queryable,
  keyring: Keyring,
  address: string,
): Promise<{ readonly channelNumber: number; readonly leftMs: number } | undefined> {
  const row = await db
    .selectFrom("channelAddresses")
    .select("channelNumber")
    .select(
      sql<number>`(extract(epoch FROM expires_at - clock_timestamp()) * 1000)::double precision`.as("leftMs"),
    )
    .where(hasAddress(keyring, address))
    .executeTakeFirst();
  return row && row.leftMs > 0 ? row : undefined;
}
