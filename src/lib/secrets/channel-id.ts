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

/** Returns whether a text may contain a channel id. This check is fast, and rarely returns true for a text without a channel id. */
export const mayHoldChannelId = (text: string): boolean => text.length >= ID_CHARS && text.includes(PREFIX);

/** Replaces every channel id in a text by `ch_***`, because a channel id is a credential. */
export const withoutChannelIds = (text: string): string =>
  mayHoldChannelId(text) ? text.replace(CHANNEL_IDS, `${PREFIX}***`) : text;

/**
 * Creates a channel id, which is both the address of a channel and a credential. The id consists of `ch_`, 128 random bits, and a
 * MAC (48 bits of HMAC-SHA256 over the rest).
 */
export function createChannelId(key: Buffer, random: Buffer = randomBytes(RANDOM_BYTES)): string {
  const head = PREFIX + encodeBase32(random);
  return head + computeMac(compileHmac("sha256", key), head);
}

/** Creates a function that checks the MAC of a channel id. Invented ids are thus rejected without a database lookup. */
export function createChannelIdCheck(key: Buffer): (id: string) => boolean {
  const hmac = compileHmac("sha256", key);
  return (id) => isAuthentic(hmac, id);
}

function isAuthentic(hmac: Hmac, id: string): boolean {
  if (id.length !== ID_CHARS || !id.startsWith(PREFIX)) return false;
  const head = id.slice(0, -MAC_CHARS);
  const given = Buffer.from(id.slice(-MAC_CHARS));
  const expected = Buffer.from(computeMac(hmac, head));
  // Check the lengths first, because `timingSafeEqual` throws if they differ. An id with characters outside ASCII has a different
  // length.
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const computeMac = (hmac: Hmac, head: string): string => encodeBase32(hmac([head]).subarray(0, MAC_BYTES));
