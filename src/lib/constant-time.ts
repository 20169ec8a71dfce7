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

/**
 * Compares a value from a query or form with secrets. Many senders do not escape `+`, which decodes to a space, so spaces also count as
 * plus signs.
 */
export const isEncodedSecretIn = (text: string, known: readonly string[]): boolean =>
  isSecretIn(text, known) || (text.includes(" ") && isSecretIn(text.replaceAll(" ", "+"), known));

/** Timing reveals only whether the lengths are equal. */
export const areBytesEqual = (a: Buffer, b: Buffer): boolean =>
  a.length === b.length && timingSafeEqual(a, b);

const computeDigest = (text: string): Buffer => createHash("sha256").update(text).digest();
