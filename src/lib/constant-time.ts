import { createHash, timingSafeEqual } from "node:crypto";

/**
 * Compares digests of the texts, and always checks every secret. Timing therefore reveals neither which secret matches nor how much
 * of it.
 */
export function isSecretIn(text: string, known: readonly string[]): boolean {
  const digest = computeDigest(text);
  let found = false;
  for (const one of known) if (timingSafeEqual(digest, computeDigest(one))) found = true;
  return found;
}

/** Timing reveals only whether the lengths are equal. */
export const areBytesEqual = (a: Buffer, b: Buffer): boolean =>
  a.length === b.length && timingSafeEqual(a, b);

const computeDigest = (text: string): Buffer => createHash("sha256").update(text).digest();
