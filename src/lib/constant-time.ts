import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Returns whether a text equals one of the known secrets. Compares digests and always checks every secret, so that timing does
 * not reveal which secret matches or how much of it.
 */
export function isSecretIn(text: string, known: readonly string[]): boolean {
  const digest = computeDigest(text);
  let found = false;
  for (const one of known) if (timingSafeEqual(digest, computeDigest(one))) found = true;
  return found;
}

/** Compares two buffers in constant time. Timing reveals only whether their lengths are equal. */
export const areBytesEqual = (a: Buffer, b: Buffer): boolean =>
  a.length === b.length && timingSafeEqual(a, b);

const computeDigest = (text: string): Buffer => createHash("sha256").update(text).digest();
