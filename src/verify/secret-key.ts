import { createHash } from "node:crypto";
import { z } from "zod";

/** How bytes come of a secret's text. */
export const secretKeySchema = z
  .strictObject({
    encoding: z.enum(["utf8", "base64", "hex"]).default("utf8").describe("How the secret is written."),
    stripPrefix: z
      .string()
      .min(1)
      .max(32)
      .optional()
      .describe("Dropped from the secret's beginning where it has it, such as whsec_."),
    append: z.string().min(1).max(32).optional().describe("Put behind the secret, such as &."),
    hash: z.enum(["md5", "sha1", "sha256", "sha512"]).optional().describe("The key is this hash of it."),
  })
  .prefault({})
  .describe("How the key is made of a secret.");
export type SecretKeySettings = z.output<typeof secretKeySchema>;

/** Makes the key of a secret's text; undefined where the text is not written as the settings say, or nothing is left of it. */
export function deriveKey(settings: SecretKeySettings, secret: string): Buffer | undefined {
  const { encoding, stripPrefix = "", append = "", hash } = settings;
  const stripped = secret.startsWith(stripPrefix) ? secret.slice(stripPrefix.length) : secret;
  const bytes = decodeSecret(stripped, encoding);
  if (bytes === undefined || bytes.length === 0) return undefined;
  const appended = append === "" ? bytes : Buffer.concat([bytes, Buffer.from(append)]);
  return hash === undefined ? appended : createHash(hash).update(appended).digest();
}

/** Why no key comes of a secret; undefined where one does. */
export const findWrongKey = (settings: SecretKeySettings, secret: string): string | undefined =>
  deriveKey(settings, secret) === undefined
    ? `is not written in ${settings.encoding}, or nothing is left of it`
    : undefined;

/** Either alphabet of base64 will do: it is a person who pasted it. */
function decodeSecret(text: string, encoding: SecretKeySettings["encoding"]): Buffer | undefined {
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
