import { z } from "zod";
import { messageSourceSchema, requestSourceSchema } from "../message/source.ts";
import { parsePublicKeys } from "./parse-keys.ts";
import { compilePin } from "./pinned-url.ts";

const KEY_TEXT =
  "PEM (public key or certificate), JWK or JWKS, DER in base64, or a bare Ed25519 key in hex or base64";

const fromSecrets = z.strictObject({
  from: z.literal("secrets").describe("Uses the channel's secrets as public keys."),
});

const inline = z.strictObject({
  from: z.literal("settings").describe("Uses the public keys in these settings."),
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
  from: z.literal("url").describe("Fetches the keys from a URL and caches them for an hour."),
  url: httpsUrl.describe("URL of the keys. Must be https; redirects are not followed."),
};

/** URL patterns. The gateway calls a URL from a request only if the URL matches one of these patterns. */
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
    "Patterns for trusted URLs: https://host/path. In the host, * matches one label, but the last two labels must be literal. In the path, * matches letters, digits, dots and dashes, at most once per segment. ?* at the end matches any query.",
  );

const named = z.strictObject({
  from: z.literal("request").describe("Fetches the keys from a URL that the request contains."),
  source: requestSourceSchema.describe("Location of the keys' URL in the request."),
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
        .describe(
          "Location of the key id (`kid`) in the request. Without this setting, Inlet tries all keys.",
        ),
    }),
    named,
  ])
  .describe("Source of the public keys.");
export const tokenKeysSchema = z
  .discriminatedUnion("from", [fromSecrets, inline, z.strictObject(fetched)])
  .describe("Source of the keys. The `kid` in the token's header selects one of them.");
