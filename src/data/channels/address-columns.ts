import { createHmac } from "node:crypto";
import { sql } from "kysely";
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
export const openAddress = (
  keyring: Pick<Keyring, "open">,
  { number, sealedAddress }: Pick<ChannelRow, "number" | "sealedAddress">,
): string => keyring.open(sealedAddress, addressPlace(number));

export const hasAddress = (keyring: Pick<Keyring, "addressHashKey">, address: string) =>
  sql<boolean>`address_hash = ${hashOfAddress(keyring, address)}`;
