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

/** False for nearly all texts that hold none. */
export const mayHoldChannelId = (text: string): boolean => text.length >= ID_CHARS && text.includes(PREFIX);

/** The text without channels' addresses. */
export const withoutChannelIds = (text: string): string =>
  mayHoldChannelId(text) ? text.replace(CHANNEL_IDS, `${PREFIX}***`) : text;

/**
 * A channel's address, a credential: `ch_` + 26 characters of 128 random bits + 10 characters of a 48-bit MAC
 * (HMAC-SHA256, truncated) over what stands before it.
 */
export function createChannelId(key: Buffer, random: Buffer = randomBytes(RANDOM_BYTES)): string {
  const head = PREFIX + encodeBase32(random);
  return head + macOf(compileHmac("sha256", key), head);
}

/** A check of ids: true for one that was made under this key. Needs no look-up: an invented id goes no further. */
export function createChannelIdCheck(key: Buffer): (id: string) => boolean {
  const hmac = compileHmac("sha256", key);
  return (id) => isMade(hmac, id);
}

function isMade(hmac: Hmac, id: string): boolean {
  if (id.length !== ID_CHARS || !id.startsWith(PREFIX)) return false;
  const head = id.slice(0, -MAC_CHARS);
  const given = Buffer.from(id.slice(-MAC_CHARS));
  const expected = Buffer.from(macOf(hmac, head));
  // A character outside ASCII takes more bytes.
  return given.length === expected.length && timingSafeEqual(given, expected);
}

const macOf = (hmac: Hmac, head: string): string => encodeBase32(hmac([head]).subarray(0, MAC_BYTES));
