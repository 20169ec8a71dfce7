import { randomBytes, timingSafeEqual } from "node:crypto";
import { encodeBase32 } from "../ids.ts";
import { compileHmac, type Hmac } from "./hmac.ts";

const PREFIX = "ch_";
const RANDOM_BYTES = 16;
const RANDOM_CHARS = 26;
const MAC_BYTES = 6;
const MAC_CHARS = 10;
const ID_CHARS = PREFIX.length + RANDOM_CHARS + MAC_CHARS;

const CHANNEL_IDS = /\bch_[a-z0-9]{36}\b/g;

/** Fast check whether a text may contain a channel id. It rarely returns true for a text without one. */
export const mayHoldChannelId = (text: string): boolean => text.length >= ID_CHARS && text.includes(PREFIX);

/** A channel id is a credential, so every occurrence is replaced by `ch_***`. */
export const withoutChannelIds = (text: string): string =>
  mayHoldChannelId(text) ? text.replace(CHANNEL_IDS, `${PREFIX}***`) : text;

/**
 * Creates a channel id, which is the address of the channel and a credential. It consists of `ch_`, 26 characters for 128 random
 * bits, and 10 characters of a MAC. The MAC is the first 48 bits of the HMAC-SHA256 of all text before it.
 */
export function createChannelId(key: Buffer, random: Buffer = randomBytes(RANDOM_BYTES)): string {
  const head = PREFIX + encodeBase32(random);
  return head + computeMac(compileHmac("sha256", key), head);
}

/** Creates a function that checks the MAC of a channel id. It rejects invented ids without a database lookup. */
export function createChannelIdCheck(key: Buffer): (id: string) => boolean {
  const hmac = compileHmac("sha256", key);
  return (id) => isAuthentic(hmac, id);
}

function isAuthentic(hmac: Hmac, id: string): boolean {
  if (id.length !== ID_CHARS || !id.startsWith(PREFIX)) return false;
  const head = id.slice(0, -MAC_CHARS);
  const given = Buffer.from(id.slice(-MAC_CHARS));
  const expected = Buffer.from(computeMac(hmac, head));
  // Check the lengths before `timingSafeEqual`, which throws if they differ. They differ if the id contains characters outside
  // ASCII.
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const computeMac = (hmac: Hmac, head: string): string => encodeBase32(hmac([head]).subarray(0, MAC_BYTES));
