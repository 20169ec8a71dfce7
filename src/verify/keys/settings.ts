import { z } from "zod";
import { messageSourceSchema, requestSourceSchema } from "../message/source.ts";
import { parsePublicKeys } from "./parse-keys.ts";
import { compilePin } from "./pinned-url.ts";

const KEY_TEXT =
  "PEM (public key or certificate), JWK or JWKS, DER in base64, or a bare Ed25519 key in hex or base64";

const fromSecrets = z.strictObject({
  from: z.literal("secrets").describe("The channel's secrets are the keys."),
});

const inline = z.strictObject({
  from: z.literal("settings").describe("The keys are given in these settings."),
  keys: z
    .array(
      z
        .string()
        .min(1)
        .max(16_384)
        .refine((text) => parsePublicKeys(text) !== undefined, "must be a public key in a supported format"),
    )
    .min(1)
    .max(16)
    .describe(`Public keys, any of which may verify a delivery: ${KEY_TEXT}.`),
});

const httpsUrl = z.url({ protocol: /^https$/ }).max(2_048);

const fetched = {
  from: z.literal("url").describe("Inlet fetches the keys and caches them for an hour."),
  url: httpsUrl.describe("URL of the keys. Must be https; redirects are not followed."),
};

/** URL patterns. Inlet calls a URL from a request only if it matches one of them. */
export const pinsField = z
  .array(
    z
      .string()
      .max(1_024)
      .superRefine((text, context) => {
        const compiled = compilePin(text);
        if (!compiled.ok) context.addIssue({ code: "custom", message: compiled.error });
      }),
  )
  .min(1)
  .max(8)
  .describe(
    "Trusted URLs: https://host/path. In the host, * matches one label, but not one of the last two. In the path, * matches letters, digits, dots and dashes within a segment, once per segment. ?* at the end matches any query.",
  );

const named = z.strictObject({
  from: z.literal("request").describe("The request contains the URL of the keys."),
  source: requestSourceSchema.describe("Location of the URL in the request."),
  pinned: pinsField,
});

export const signatureKeysSchema = z
  .discriminatedUnion("from", [
    fromSecrets,
    inline,
    z.strictObject({
      ...fetched,
      keyId: messageSourceSchema
        .optional()
        .describe("Location of the key id (`kid`). Without it, any of the keys may verify the delivery."),
    }),
    named,
  ])
  .describe("Source of the public keys.");
export const tokenKeysSchema = z
  .discriminatedUnion("from", [fromSecrets, inline, z.strictObject(fetched)])
  .describe("Source of the keys. The token selects one of them by its `kid`.");
