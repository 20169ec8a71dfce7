import { createHmac, hash } from "node:crypto";

/** Block size of each hash function, in bytes. */
const BLOCK_BYTES = { md5: 64, sha1: 64, sha256: 64, sha384: 128, sha512: 128 } as const;
/** Maximum size in bytes of a message that is copied behind the key, so that a single call hashes key and message. */
const MAX_COPIED_BYTES = 8 * 1024;
/** Buffer for key and message. All calls can share it, because hashing is synchronous. */
const scratch = Buffer.alloc(128 + MAX_COPIED_BYTES);

export type HmacHash = keyof typeof BLOCK_BYTES;

/** Computes the HMAC of a message that is given as consecutive pieces. */
export type Hmac = (pieces: readonly (string | Buffer)[]) => Buffer;

/**
 * Prepares a key for computing many HMACs (RFC 2104). Two plain hash calls take 1 µs for a short message, while `createHmac` takes
 * 3 to 11 µs.
 */
export function compileHmac(algorithm: HmacHash, key: string | Buffer): Hmac {
  const block = BLOCK_BYTES[algorithm];
  const given = Buffer.from(key);
  const bytes = given.length > block ? hash(algorithm, given, "buffer") : given;
  const padded = (pad: number): Buffer =>
    Buffer.from(Array.from({ length: block }, (_, i) => (bytes[i] ?? 0) ^ pad));
  const inner = padded(0x36);
  const outer = padded(0x5c);
  const hashBehind = (head: Buffer, pieces: readonly (string | Buffer)[], encoding?: "binary"): string => {
    let end = head.copy(scratch);
    for (const piece of pieces) {
      end += typeof piece === "string" ? scratch.write(piece, end, encoding) : piece.copy(scratch, end);
    }
    return hash(algorithm, scratch.subarray(0, end), "binary");
  };
  return (pieces) => {
    let size = 0;
    // Estimate the size in bytes. In UTF-8, a UTF-16 code unit takes at most three bytes.
    for (const piece of pieces) size += typeof piece === "string" ? piece.length * 3 : piece.length;
    if (size <= MAX_COPIED_BYTES) {
      return Buffer.from(hashBehind(outer, [hashBehind(inner, pieces)], "binary"), "binary");
    }
    const hashing = createHmac(algorithm, given);
    for (const piece of pieces) hashing.update(piece);
    return hashing.digest();
  };
}
