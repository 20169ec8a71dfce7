import { randomBytes } from "node:crypto";

/** Makes one new id. */
export type NewId = () => string;

/** Crockford's base 32 in lower case: no `i`, `l`, `o`, `u`; sorts as the numbers sort. */
const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;
const RANDOM_BYTES = 8;
const POOL_BYTES = 512 * RANDOM_BYTES;

/**
 * A time-ordered opaque id: `<prefix>_` + 10 characters of milliseconds (48 bits) + 13 characters of 64 random
 * bits. Ids made in different milliseconds sort by time; within one they do not.
 */
export function createId(prefix: string, nowMs: number, random?: Uint8Array): string {
  return `${prefix}_${timeText(nowMs)}${random === undefined ? randomText() : encodeBase32(random)}`;
}

/** The last one made: many deliveries come within one millisecond. */
let last = { ms: 0, text: "0".repeat(TIME_CHARS) };

function timeText(ms: number): string {
  if (ms === last.ms) return last.text;
  let text = "";
  for (let i = 0, rest = ms; i < TIME_CHARS; i++, rest = Math.floor(rest / 32)) {
    text = ALPHABET.charAt(rest % 32) + text;
  }
  last = { ms, text };
  return text;
}

/** Eight bytes cost five times what the rest of an id does when asked for alone, so they come from a pool; none is used twice. */
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

/** When an id of `createId` was made: milliseconds. */
export function timeOfId(id: string): number {
  const start = id.lastIndexOf("_") + 1;
  let ms = 0;
  for (const char of id.slice(start, start + TIME_CHARS)) ms = ms * 32 + ALPHABET.indexOf(char);
  return ms;
}

/** Lower-case Crockford base 32 of whole bytes, of those between two places, most significant bit first, the last character zero-padded. */
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

/** True for an id that `createId` makes under that prefix; a path parameter that fails it names nothing (404). */
export function isId(prefix: string, text: string): boolean {
  return text.startsWith(`${prefix}_`) && /^[0-9a-hjkmnp-tv-z]{23}$/.test(text.slice(prefix.length + 1));
}
