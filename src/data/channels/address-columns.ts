import { createHmac } from "node:crypto";
import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

/** The place that a channel's address is sealed for. */
export const addressPlace = (channelNumber: number): string => `channels/${channelNumber}/address`;

/** By which an address is looked up: it tells nothing of it. */
export const hashOfAddress = ({ addressHashKey }: Pick<Keyring, "addressHashKey">, address: string): Buffer =>
  createHmac("sha256", addressHashKey).update(address).digest();

/** A channel's address as it rests. */
export const sealAddress = (keyring: Keyring, channelNumber: number, address: string) => ({
  addressHash: hashOfAddress(keyring, address),
  sealedAddress: keyring.seal(address, addressPlace(channelNumber)),
});

/** The channel's address. @throws UnavailableError */
export function openAddress(
  keyring: Pick<Keyring, "open">,
  { number, id, sealedAddress }: Pick<ChannelRow, "number" | "id" | "sealedAddress">,
): string {
  if (sealedAddress !== null) return keyring.open(sealedAddress, addressPlace(number));
  // Given by a program from before, which knows of no other column.
  if (id === null) throw new Error(`channel ${number} has no address`);
  return id;
}

/** True of the row with that address. */
export const hasAddress = (keyring: Pick<Keyring, "addressHashKey">, address: string) =>
  sql<boolean>`(address_hash = ${hashOfAddress(keyring, address)} OR id = ${address})`;

/** The address for the column that programs from before know, while such may run beside; else null. */
export async function plainAddress(db: Queryable, address: string): Promise<string | null> {
  return (await keepsPlainAddresses(db)) ? address : null;
}

/** True while such programs may run beside. */
export async function keepsPlainAddresses(db: Queryable): Promise<boolean> {
  const { plainAddresses } = await db
    .selectFrom("cluster")
    .select("plainAddresses")
    .executeTakeFirstOrThrow();
  return plainAddresses;
}
