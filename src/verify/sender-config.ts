import { z } from "zod";
import { answerSchema } from "../event/answer.ts";
import {
  bodyDecodingSchema,
  filesSchema,
  formCharsetSchema,
  formReadingSchema,
} from "../event/body-reading.ts";
import { methodsField } from "../event/methods.ts";
import { NO_NETWORK, parseNetwork } from "../lib/addresses/networks.ts";
import { secretName } from "./handshake/config.ts";
import { handshakeSchema } from "./handshake/schema.ts";
import { VERIFICATION_SCHEMES } from "./schemes.ts";

const [first, ...others] = VERIFICATION_SCHEMES;

/** Verification config of a channel that uses the verification scheme of its provider preset. */
const presetVerification = z
  .looseObject({ scheme: z.literal("preset").describe("Uses the verification of the channel's preset.") })
  .describe("Uses the verification of the channel's `preset`. Settings given here override the preset's.");

/** A secret with an optional validity window. Overlapping windows allow secret rotation without downtime. */
const secretSchema = z
  .strictObject({
    value: z.string().min(1).max(4_096).describe("The secret value."),
    name: secretName
      .optional()
      .describe("Name by which handshakes refer to this secret. Secrets without a name verify deliveries."),
    notBefore: z.iso.datetime({ offset: true }).optional().describe("Start of the validity window."),
    notAfter: z.iso.datetime({ offset: true }).optional().describe("End of the validity window."),
  })
  .refine(
    ({ notBefore, notAfter }) =>
      notBefore === undefined || notAfter === undefined || Date.parse(notBefore) < Date.parse(notAfter),
    { path: ["notAfter"], message: "must be later than notBefore" },
  );
export type Secret = z.output<typeof secretSchema>;

export const handshakesField = z
  .array(handshakeSchema)
  .max(16)
  .describe(
    "Setup requests of the provider that are not deliveries, and Inlet's responses to them. The first matching handshake applies.",
  );

export const deliveryFields = {
  readAs: z
    .enum(["application/json", "application/x-www-form-urlencoded", "application/x-ndjson", "ndjson"])
    .optional()
    .describe(
      "Content type with which to parse bodies, for senders that declare a wrong one. With `application/x-ndjson` (or `ndjson`), each line is an item.",
    ),
  forms: formReadingSchema
    .optional()
    .describe(
      "How to read deliveries in form encoding (application/x-www-form-urlencoded or multipart/form-data). Verification always uses the raw body. Defaults to the preset's setting, or else to `fields`.",
    ),
  formCharset: formCharsetSchema
    .optional()
    .describe(
      "Character encoding of forms and query parameters, for senders that do not use UTF-8 and do not declare their encoding in `Content-Type`. Defaults to the preset's setting, then to the declared encoding, then to the form's field `_charset_`, and else to UTF-8. Inlet quarantines bytes that are invalid in the encoding as `invalid_body`.",
    ),
  decode: bodyDecodingSchema
    .optional()
    .describe(
      "Text in a JSON body that contains a further document, such as `Message` of Amazon SNS or `message.data` of Google Pub/Sub. Inlet replaces the text by the document, so that paths and schemas can read it. A missing, null or empty value stays as it is. Inlet quarantines a text that it cannot decode as `invalid_body`. Not for CloudEvents channels. Defaults to the preset's setting.",
    ),
  answer: answerSchema
    .optional()
    .describe(
      "Response to an accepted delivery: `outcome` reports the result of each item; `empty` is 200 without a body. An object is a fixed text, for senders that accept no other response. Defaults to the preset's setting, or else to `outcome`.",
    ),
} as const;

/** Settings of requests in the sender's own format, which CloudEvents channels do not have. */
export const requestFields = { methods: methodsField.optional(), files: filesSchema.optional() } as const;

export const senderFields = {
  preset: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      "Name of a provider preset, which supplies verification, handshakes and default paths of type and id. The channel's own settings take precedence. Without definitions, the channel publishes every item under its received type. Inlet stores only the name, so improvements to a preset in later versions apply to the channel.",
    ),
  verification: z
    .discriminatedUnion("scheme", [
      first.configSchema,
      ...others.map(({ configSchema }) => configSchema),
      presetVerification,
    ])
    .prefault({ scheme: "none" })
    .describe(
      "How to verify that a delivery comes from the channel's sender. On a channel with a preset, `none` means the preset's verification.",
    ),
  secrets: z
    .array(secretSchema)
    .max(16)
    .default([])
    .describe(
      "Secrets that the sender signs with. Inlet accepts any currently valid secret, so you can add a new secret before the old one expires.",
    ),
  allowedAddresses: z
    .array(z.string().refine((text) => parseNetwork(text) !== undefined, NO_NETWORK))
    .min(1)
    .max(256)
    .optional()
    .describe(
      "Networks (203.0.113.0/24, 2001:db8::/32) or addresses that may send deliveries; requests from any other address get 401. Applies in addition to `verification`, and is most useful for senders that sign no deliveries. Set INLET_TRUST_PROXY behind a proxy, so that Inlet sees the client's address. Unrestricted by default.",
    ),
  shadow: z
    .boolean()
    .default(false)
    .describe(
      "Shadow mode: whether to accept deliveries that fail verification, and only count the failures. Use it to test settings on live deliveries.",
    ),
  trustTrace: z
    .boolean()
    .default(false)
    .describe(
      "Whether traces continue that of the sender's `traceparent` header, and follow the sender's decision to sample. By default, each delivery starts its own trace with a link to the sender's, so that senders cannot decide how much is traced. Takes effect when the gateway exports traces.",
    ),
  handshakes: handshakesField.optional(),
  allowHandshakes: z
    .enum(["always", "setup", "never"])
    .default("always")
    .describe("When Inlet responds to handshakes. `setup` means only while the channel has no secret."),
  ...deliveryFields,
} as const;

/**
 * Parses the sender config of a channel, such as its verification and secrets. Pull channels have none, because the gateway itself
 * calls their source.
 */
export const senderConfigSchema = z.object({ ...senderFields, ...requestFields });
export type SenderConfig = z.output<typeof senderConfigSchema>;

/**
 * Replaces the default verification scheme `none` with `preset` on a channel with a provider preset, so that the API shows the
 * actual scheme.
 */
export const inheritPresetVerification = <T extends Pick<SenderConfig, "preset" | "verification">>(
  config: T,
): T =>
  config.preset !== undefined && config.verification.scheme === "none"
    ? { ...config, verification: { scheme: "preset" } }
    : config;
