import { z } from "zod";
import { messageSourceSchema, requestSourceSchema } from "../message/source.ts";
import { parsePublicKeys } from "./parse-keys.ts";
import { compilePin } from "./pinned-url.ts";

const KEY_TEXT =
  "PEM (public key or certificate), JWK or JWKS, DER in base64, or the bare Ed25519 key in hex or base64";

const fromSecrets = z.strictObject({
  from: z.literal("secrets").describe("The channel's secrets are the keys."),
});

const inline = z.strictObject({
  from: z.literal("settings").describe("They stand here."),
  keys: z
    .array(
      z
        .string()
        .min(1)
        .max(16_384)
        .refine((text) => parsePublicKeys(text) !== undefined, "is no public key that can be read"),
    )
    .min(1)
    .max(16)
    .describe(`Public keys, any of which will do: ${KEY_TEXT}.`),
});

const httpsUrl = z.url({ protocol: /^https$/ }).max(2_048);

const fetched = {
  from: z.literal("url").describe("They are fetched, and kept for an hour."),
  url: httpsUrl.describe("Where: https, and no other address than this."),
};

/** An address that a request names: only where it fits one of these. */
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
    "Which addresses are believed: https://host/path, where * stands for one label of the host (never one of the last two) or for letters, digits, dots and dashes of one segment of the path (once in each), and ?* at the end for any query.",
  );

const named = z.strictObject({
  from: z.literal("request").describe("The request names their address."),
  source: requestSourceSchema.describe("Where it stands."),
  pinned: pinsField,
});

/** Where the public keys of an asymmetric signature come from. */
export const signatureKeysSchema = z
  .discriminatedUnion("from", [
    fromSecrets,
    inline,
    z.strictObject({
      ...fetched,
      keyId: messageSourceSchema
        .optional()
        .describe("What names the key (`kid`); absent: any of them will do."),
    }),
    named,
  ])
  .describe("Where the public keys come from.");

/** Where the keys of a JWT come from. */
export const tokenKeysSchema = z
  .discriminatedUnion("from", [fromSecrets, inline, z.strictObject(fetched)])
  .describe("Where the keys come from; which of them, the token says (`kid`).");
