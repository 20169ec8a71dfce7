import { randomBytes } from "node:crypto";

export type NewId = () => string;

/**
 * Alphabet of Crockford's base 32 in lower case, without `i`, `l`, `o` and `u`. Encoded texts sort like the numbers that they
 * encode.
 */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;
const RANDOM_BYTES = 8;
const POOL_BYTES = 512 * RANDOM_BYTES;

/**
 * Creates an opaque id: `<prefix>_`, 10 characters for the time in ms, and 13 characters for 64 random bits. Ids sort by creation
 * time, but in random order within a millisecond.
 */
export function createId(prefix: string, nowMs: number, random?: Uint8Array): string {
  return `${prefix}_${formatTime(nowMs)}${random === undefined ? randomText() : encodeBase32(random)}`;
}

/** The most recently encoded time. Many requests arrive within the same millisecond, so caching one time is enough. */
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

/** Pool of random bytes, each used only once. Requesting 8 bytes for every id would take most of the time of creating an id. */
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

/** Returns the creation time that an id contains, in ms since 1970. */
export function timeOfId(id: string): number {
  const start = id.lastIndexOf("_") + 1;
  let ms = 0;
  for (const char of id.slice(start, start + TIME_CHARS)) ms = ms * 32 + ALPHABET.indexOf(char);
  return ms;
}

/**
 * Encodes the bytes from index `from` up to `to` in lower-case Crockford base 32, most significant bit first. Zero bits pad the
 * last character.
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

/** Returns whether a text has the format of an id with this prefix. The API responds with 404 to an id in any other format. */
export function isId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-hjkmnp-tv-z]{23}$/.test(text.slice(prefix.length + 1));
}
