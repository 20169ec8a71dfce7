import { randomBytes } from "node:crypto";

export type NewId = () => string;

/** Crockford's base 32 in lower case, which omits `i`, `l`, `o` and `u`. Encoded texts sort like the encoded numbers. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;
const RANDOM_BYTES = 8;
const POOL_BYTES = 512 * RANDOM_BYTES;

/**
 * Creates an opaque id: `<prefix>_`, then 10 characters for the time in ms (48 bits) and 13 for 64 random bits. Ids sort by the
 * millisecond of their creation. Within a millisecond, their order is random.
 */
export function createId(prefix: string, nowMs: number, random?: Uint8Array): string {
  return `${prefix}_${formatTime(nowMs)}${random === undefined ? randomText() : encodeBase32(random)}`;
}

/** The time that was encoded last. Many deliveries arrive within the same millisecond, so caching one is enough. */
let last = { ms: 0, text: "0".repeat(TIME_CHARS) };

function formatTime(ms: number): string {
  if (ms === last.ms) return last.text;
  let text = "";
  for (let i = 0, rest = ms; i < TIME_CHARS; i++, rest = Math.floor(rest / 32)) {
    text = ALPHABET.charAt(rest % 32) + text;
  }
  last = { ms, text };
  return text;
}

/**
 * Pool of random bytes, each of which is used only once. Requesting eight bytes at a time would take five times as long as the
 * rest of creating an id.
 */
const pool = { bytes: Buffer.alloc(0), used: 0 };

function randomText(): string {
  if (pool.used === pool.bytes.length) {
    pool.bytes = randomBytes(POOL_BYTES);
    pool.used = 0;
  }
  const from = pool.used;
  pool.used += RANDOM_BYTES;
  return encodeBase32(pool.bytes, from, pool.used);
}

/** Returns the creation time of an id in milliseconds since 1970. */
export function timeOfId(id: string): number {
  const start = id.lastIndexOf("_") + 1;
  let ms = 0;
  for (const char of id.slice(start, start + TIME_CHARS)) ms = ms * 32 + ALPHABET.indexOf(char);
  return ms;
}

/**
 * Encodes bytes `from` to `to` in lower-case Crockford base 32, most significant bit first. The last character is padded with zero
 * bits.
 */
export function encodeBase32(bytes: Uint8Array, from = 0, to = bytes.length): string {
  let text = "";
  let bits = 0;
  let held = 0;
  for (let i = from; i < to; i++) {
    held = (held << 8) | (bytes[i] ?? 0);
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += ALPHABET.charAt((held >>> bits) & 31);
    }
    held &= (1 << bits) - 1;
  }
  return bits > 0 ? text + ALPHABET.charAt((held << (5 - bits)) & 31) : text;
}

/** Returns whether a text has the form of an id with this prefix. A path parameter of any other form yields 404. */
export function isId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-hjkmnp-tv-z]{23}$/.test(text.slice(prefix.length + 1));
}
