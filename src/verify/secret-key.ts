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
