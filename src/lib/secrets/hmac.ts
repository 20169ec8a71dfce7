import { createHmac, hash } from "node:crypto";

/** Bytes that each hash takes at once. */
const BLOCK_BYTES = { md5: 64, sha1: 64, sha256: 64, sha384: 128, sha512: 128 } as const;
/** A longer message is not copied. */
const MAX_COPIED_BYTES = 64 * 1024;

export type HmacHash = keyof typeof BLOCK_BYTES;

/** The keyed hash of a message that comes in pieces. */
export type Hmac = (pieces: readonly (string | Buffer)[]) => Buffer;

/**
 * A keyed hash (RFC 2104) under a key that serves many messages. `createHmac` makes a context for each, which takes longer than
 * to hash a short message twice: 3 to 11 µs against 1.
 */
export function compileHmac(algorithm: HmacHash, key: string | Buffer): Hmac {
  const block = BLOCK_BYTES[algorithm];
  const given = Buffer.from(key);
  const bytes = given.length > block ? hash(algorithm, given, "buffer") : given;
  const padded = (pad: number): Buffer =>
    Buffer.from(Array.from({ length: block }, (_, i) => (bytes[i] ?? 0) ^ pad));
  const inner = padded(0x36);
  const outer = padded(0x5c);
  const digest = (head: Buffer, rest: readonly Buffer[]): Buffer =>
    hash(algorithm, Buffer.concat([head, ...rest]), "buffer");
  return (pieces) => {
    const message = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece));
    const size = message.reduce((sum, { length }) => sum + length, 0);
    if (size <= MAX_COPIED_BYTES) return digest(outer, [digest(inner, message)]);
    const hashing = createHmac(algorithm, given);
    for (const piece of message) hashing.update(piece);
    return hashing.digest();
  };
}
