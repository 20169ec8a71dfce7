import { z } from "zod";
import { signatureKeysSchema } from "./keys/settings.ts";
import { signedMessageSettings } from "./message/settings.ts";
import { requestSourceSchema } from "./message/source.ts";

export const SIGNATURE_ALGORITHMS = [
  "ed25519",
  "ecdsa-p256-sha256",
  "ecdsa-p384-sha384",
  "rsa-sha256",
  "rsa-sha512",
  "rsa-sha1",
] as const;

const algorithm = z.enum(SIGNATURE_ALGORITHMS);

export const asymmetricSettings = z
  .strictObject({
    scheme: z
      .literal("asymmetric")
      .describe("A signature under a public key: Ed25519, ECDSA or RSA (PKCS #1 v1.5)."),
    algorithm: algorithm.optional().describe("The algorithm; keys of another kind are refused."),
    algorithmFrom: z
      .strictObject({
        source: requestSourceSchema.describe("What says which algorithm was used."),
        values: z
          .record(z.string().min(1).max(64), algorithm)
          .refine((values) => Object.keys(values).length <= 8, "must be 8 at most")
          .describe("What it may say, and the algorithm that each stands for; all else is refused."),
      })
      .optional()
      .describe("For senders that use several: in place of `algorithm`."),
    ecdsaFormat: z
      .enum(["der", "ieee-p1363"])
      .default("der")
      .describe("How an ECDSA signature is put into bytes: ASN.1 DER, or r and s at full length."),
    keys: signatureKeysSchema,
    ...signedMessageSettings,
  })
  .describe("Deliveries signed with a private key.");
