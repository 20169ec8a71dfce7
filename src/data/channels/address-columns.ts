import { createHmac } from "node:crypto";
import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

/** Returns the context to which a sealed channel address is bound, so that it cannot be decrypted in another place. */
export const addressPlace = (channelNumber: number): string => `channels/${channelNumber}/address`;

/** Hashes an address for lookup, so that the stored value does not reveal the address. */
export const hashOfAddress = ({ addressHashKey }: Pick<Keyring, "addressHashKey">, address: string): Buffer =>
  createHmac("sha256", addressHashKey).update(address).digest();

/** Returns the columns that store a channel's address: its hash and the sealed address. */
export const sealAddress = (keyring: Keyring, channelNumber: number, address: string) => ({
  addressHash: hashOfAddress(keyring, address),
  sealedAddress: keyring.seal(address, addressPlace(channelNumber)),
});

/** Decrypts a channel's address. @throws UnavailableError if it is sealed under an unknown master key */
export function openAddress(
  keyring: Pick<Keyring, "open">,
  { number, id, sealedAddress }: Pick<ChannelRow, "number" | "id" | "sealedAddress">,
): string {
  if (sealedAddress !== null) return keyring.open(sealedAddress, addressPlace(number));
  // An earlier version created the address and stored it in the plain column.
  if (id === null) throw new Error(`channel ${number} has no address`);
  return id;
}

/** SQL condition for the row with the given address. */
export const hasAddress = (keyring: Pick<Keyring, "addressHashKey">, address: string) =>
  sql<boolean>`(address_hash = ${hashOfAddress(keyring, address)} OR id = ${address})`;

/**
 * Returns the value for the column that stores the address in plain text. It is the address while gateways of earlier versions may run,
 * otherwise `null`.
 */
export async function plainAddress(db: Queryable, address: string): Promise<string | null> {
  return (await keepsPlainAddresses(db)) ? address : null;
}

/** Returns true while gateways of earlier versions may still run, which find channels by their address in plain text. */
export async function keepsPlainAddresses(db: Queryable): Promise<boolean> {
  const { plainAddresses } = await db
    .selectFrom("cluster")
    .select("plainAddresses")
    .executeTakeFirstOrThrow();
  return plainAddresses;
}
