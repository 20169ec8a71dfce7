import { createHash } from "node:crypto";
import { z } from "zod";

export const secretKeySchema = z
  .strictObject({
    encoding: z.enum(["utf8", "base64", "hex"]).default("utf8").describe("Encoding of the secret."),
    stripPrefix: z
      .string()
      .min(1)
      .max(32)
      .optional()
      .describe("Prefix to remove from the secret if present, such as whsec_."),
    append: z.string().min(1).max(32).optional().describe("Suffix to append to the secret, such as &."),
    hash: z
      .enum(["md5", "sha1", "sha256", "sha512"])
      .optional()
      .describe("Hash function, if the key is a hash of the secret."),
  })
  .prefault({})
  .describe("How to derive the key from a secret.");
export type SecretKeyConfig = z.output<typeof secretKeySchema>;

/**
 * Derives the key from a secret. Returns `undefined` if the secret is empty after its prefix, or is not in the configured encoding.
 */
export function deriveKey(config: SecretKeyConfig, secret: string): Buffer | undefined {
  const { encoding, stripPrefix = "", append = "", hash } = config;
  const stripped = secret.startsWith(stripPrefix) ? secret.slice(stripPrefix.length) : secret;
  const bytes = decodeSecret(stripped, encoding);
  if (bytes === undefined || bytes.length === 0) return undefined;
  const appended = append === "" ? bytes : Buffer.concat([bytes, Buffer.from(append)]);
  return hash === undefined ? appended : createHash(hash).update(appended).digest();
}

export const findWrongKey = (config: SecretKeyConfig, secret: string): string | undefined =>
  deriveKey(config, secret) === undefined
    ? `must be valid ${config.encoding}, and not empty without its prefix`
    : undefined;

/** Decodes a secret. Accepts standard and URL-safe base64, because people paste secrets in either form. */
function decodeSecret(text: string, encoding: SecretKeyConfig["encoding"]): Buffer | undefined {
  switch (encoding) {
    case "utf8":
      return Buffer.from(text);
    case "hex":
      return /^(?:[0-9a-f]{2})+$/i.test(text) ? Buffer.from(text, "hex") : undefined;
    case "base64":
      return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, "base64") : undefined;
    default:
      return encoding satisfies never;
  }
}
