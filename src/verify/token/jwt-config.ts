import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { tokenKeysSchema } from "../keys/config.ts";
import { ENCODINGS } from "../message/config.ts";
import { requestSourceSchema } from "../message/source.ts";
import { secretKeySchema } from "../secret-key.ts";

/** Signature algorithms that use a private key, which only the sender has. */
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
  scheme: z.literal("jwt").describe("A signed JSON Web Token (RFC 7519)."),
  source: requestSourceSchema
    .default({ in: "header", name: "authorization" })
    .describe("Location of the token in the request. Inlet removes a leading `Bearer `."),
  keys: tokenKeysSchema,
  key: secretKeySchema,
  algorithms: z
    .array(z.enum([...PUBLIC_KEY_ALGORITHMS, ...SECRET_ALGORITHMS]))
    .min(1)
    .max(8)
    .describe(
      "Accepted signature algorithms: either only HS… with the channel's secrets as keys, or no HS… at all.",
    ),
  issuer: oneOrMore.optional().describe("Accepted values of the claim `iss`."),
  audience: oneOrMore
    .optional()
    .describe("Accepted values of the claim `aud`. If the claim is a list, one match is enough."),
  claims: z
    .record(claimName, z.union([z.string(), z.number(), z.boolean()]))
    .default({})
    .describe("Other claims that the token must contain with exactly these values."),
  secretClaim: claimName
    .optional()
    .describe(
      "A claim that must equal one of the channel's secrets, such as the `email` of a service account. Use this setting if the sender signs for all its customers with the same keys.",
    ),
  bodyHash: z
    .strictObject({
      claim: claimName.describe("Name of the claim that contains the body hash."),
      algorithm: z.enum(["sha256", "sha384", "sha512"]).default("sha256").describe("Hash function."),
      encoding: z.enum(ENCODINGS).default("hex").describe("Encoding of the hash."),
      ofQuery: z
        .literal("json")
        .optional()
        .describe(
          "Source of the hash if the method is GET or DELETE. `json` is the object of the query parameters as JSON without white space, in the order of the query.",
        ),
    })
    .optional()
    .describe("A claim that contains a hash of the body, so that the token is only valid for that body."),
  deliveryIdClaim: claimName
    .optional()
    .describe(
      "Name of the claim that contains the delivery's id, such as jti. Inlet uses this id when no `idPath` applies.",
    ),
  requireExpiry: z.boolean().default(true).describe("Whether to reject a token without `exp`."),
  maxAgeSeconds: z
    .int()
    .min(1)
    .max(604_800)
    .optional()
    .describe("Maximum age of the token in seconds, measured from the claim `iat`, which is then required."),
  clockSkewSeconds: z
    .int()
    .min(0)
    .max(3_600)
    .default(60)
    .describe("Tolerated difference in seconds between the sender's clock and the gateway's."),
  bindDedupe: z
    .enum(["none", "signedBytes"])
    .default("none")
    .describe(
      "With `signedBytes`, Inlet remembers the token for the dedupe window, in addition to the event ids. A delivery with the same token but another id or type is quarantined as a replay.",
    ),
});

export type JwtConfig = z.output<typeof shape>;

export const usesSharedSecrets = (algorithms: readonly string[]): boolean =>
  algorithms.every((name) => name.startsWith("HS"));

export const jwtConfigSchema = shape
  .check(
    checkFields(({ algorithms, keys, secretClaim }, note) => {
      if (secretClaim !== undefined && keys.from === "secrets") {
        note("secretClaim", "is not allowed when the channel's secrets are the keys");
      }
      const bySecret = algorithms.filter((name) => name.startsWith("HS")).length;
      if (bySecret > 0 && bySecret < algorithms.length) {
        note(
          "algorithms",
          "must not mix HS… with other algorithms, because an attacker could use a public key as the secret",
        );
      } else if (bySecret > 0 && keys.from !== "secrets") {
        note(
          "keys",
          "must be `secrets` when `algorithms` are HS…, because keys that others can read are not secret",
        );
      }
    }),
  )
  .describe("Verifies deliveries that contain a signed token.");
