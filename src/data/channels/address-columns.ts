import { createHmac } from "node:crypto";
import { sql } from "kysely";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";

/** Encryption context (AAD) that binds a sealed address to its channel. */
export const addressPlace = (channelNumber: number): string => `channels/${channelNumber}/address`;

/** Keyed hash for looking up an address. The stored hash does not reveal the address, which is a credential. */
export const hashOfAddress = ({ addressHashKey }: Pick<Keyring, "addressHashKey">, address: string): Buffer =>
  createHmac("sha256", addressHashKey).update(address).digest();

export const sealAddress = (keyring: Keyring, channelNumber: number, address: string) => ({
  addressHash: hashOfAddress(keyring, address),
  sealedAddress: keyring.seal(address, addressPlace(channelNumber)),
});

/** @throws UnavailableError if the address is sealed under an unknown master key */
export function openAddress(
  keyring: Pick<Keyring, "open">,
  { number, id, sealedAddress }: Pick<ChannelRow, "number" | "id" | "sealedAddress">,
): string {
  if (sealedAddress !== null) return keyring.open(sealedAddress, addressPlace(number));
  // Without a sealed address, the row was written by an earlier version, which stored the address in plain text in `id`.
  if (id === null) throw new Error(`channel ${number} has no address`);
  return id;
}

export const hasAddress = (keyring: Pick<Keyring, "addressHashKey">, address: string) =>
  sql<boolean>`(address_hash = ${hashOfAddress(keyring, address)} OR id = ${address})`;

/** Returns what to store in the plain-text address column: the address while gateways of earlier versions may run, otherwise `null`. */
export async function plainAddress(db: Queryable, address: string): Promise<string | null> {
  return (await keepsPlainAddresses(db)) ? address : null;
}

/** Returns true while gateways of earlier versions may run. They look channels up by the address in plain text. */
export async function keepsPlainAddresses(db: Queryable): Promise<boolean> {
  const { plainAddresses } = await db
    .selectFrom("cluster")
    .select("plainAddresses")
    .executeTakeFirstOrThrow();
  return plainAddresses;
}
