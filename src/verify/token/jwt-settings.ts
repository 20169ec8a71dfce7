import { z } from "zod";
import { checkSettings } from "../../lib/check-settings.ts";
import { tokenKeysSchema } from "../keys/settings.ts";
import { ENCODINGS } from "../message/settings.ts";
import { requestSourceSchema } from "../message/source.ts";
import { secretKeySchema } from "../secret-key.ts";

/** Signatures by a private key that only the sender has. */
export const PUBLIC_KEY_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
] as const;
const SECRET_ALGORITHMS = ["HS256", "HS384", "HS512"] as const;

const claimName = z.string().min(1).max(256);
const claimText = z.string().min(1).max(1_024);
const oneOrMore = z.union([claimText, z.array(claimText).min(1).max(16)]);

const shape = z.strictObject({
  scheme: z.literal("jwt").describe("A JSON Web Token (RFC 7519), signed."),
  source: requestSourceSchema
    .default({ in: "header", name: "authorization" })
    .describe("Where the token stands; a word Bearer before it is dropped."),
  keys: tokenKeysSchema,
  key: secretKeySchema,
  algorithms: z
    .array(z.enum([...PUBLIC_KEY_ALGORITHMS, ...SECRET_ALGORITHMS]))
    .min(1)
    .max(8)
    .describe("What it may be signed by; HS… only, with secrets as keys, or none of HS…."),
  issuer: oneOrMore.optional().describe("What `iss` must be, or one of which."),
  audience: oneOrMore.optional().describe("What `aud` must be or hold, or one of which."),
  claims: z
    .record(claimName, z.union([z.string(), z.number(), z.boolean()]))
    .default({})
    .describe("Further claims that must be there with these values."),
  secretClaim: claimName
    .optional()
    .describe(
      "The claim that must be one of the channel's secrets: for senders that sign for all their customers under the same keys, such as the `email` of a service account.",
    ),
  bodyHash: z
    .strictObject({
      claim: claimName.describe("The claim that holds it."),
      algorithm: z.enum(["sha256", "sha384", "sha512"]).default("sha256").describe("The hash."),
      encoding: z.enum(ENCODINGS).default("hex").describe("How it is written."),
    })
    .optional()
    .describe("A claim that binds the token to the body: its hash."),
  deliveryIdClaim: claimName
    .optional()
    .describe("The claim that names the delivery where no idPath does, such as jti."),
  requireExpiry: z.boolean().default(true).describe("Refuses a token without `exp`."),
  maxAgeSeconds: z
    .int()
    .min(1)
    .max(604_800)
    .optional()
    .describe("How long ago it may have been issued (`iat`, which must be there)."),
  clockSkewSeconds: z
    .int()
    .min(0)
    .max(3_600)
    .default(60)
    .describe("How far the sender's clock may be from the gateway's."),
  bindDedupe: z
    .enum(["none", "signedBytes"])
    .default("none")
    .describe(
      "signedBytes: the token is remembered for the dedupe window, beside the ids; the same again under another id or type is quarantined as replayed.",
    ),
});

export type JwtSettings = z.output<typeof shape>;

/** True where the keys are secrets that the sender shares. */
export const usesSharedSecrets = (algorithms: readonly string[]): boolean =>
  algorithms.every((name) => name.startsWith("HS"));

export const jwtSettings = shape
  .check(
    checkSettings(({ algorithms, keys, secretClaim }, note) => {
      if (secretClaim !== undefined && keys.from === "secrets") {
        note("secretClaim", "cannot be: the channel's secrets are the keys, which no token holds");
      }
      const bySecret = algorithms.filter((name) => name.startsWith("HS")).length;
      if (bySecret > 0 && bySecret < algorithms.length) {
        note("algorithms", "mixes HS… with others: a public key could be taken for a secret");
      } else if (bySecret > 0 && keys.from !== "secrets") {
        note(
          "keys",
          "must be the channel's secrets where `algorithms` are HS…: what others can read is no secret",
        );
      }
    }),
  )
  .describe("Deliveries with a signed token.");
