import { type BinaryToTextEncoding, createHmac } from "node:crypto";

/** Returns the HMAC of a text, computed without the code under test. */
export function sign(
  text: string,
  key: string | Buffer,
  { algorithm = "sha256", encoding = "hex" }: { algorithm?: string; encoding?: BinaryToTextEncoding } = {},
): string {
  return createHmac(algorithm, key).update(text).digest(encoding);
}
