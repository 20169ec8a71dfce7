import { z } from "zod";
import { formReadingSchema } from "../event/form-reading.ts";
import { NO_NETWORK, parseNetwork } from "../lib/addresses/networks.ts";
import { handshakeSchema } from "./handshake/schema.ts";
import { secretName } from "./handshake/settings.ts";
import { VERIFICATION_SCHEMES } from "./schemes.ts";

const [first, ...others] = VERIFICATION_SCHEMES;

/** Beside the schemes: what the preset says. */
const ofPreset = z
  .looseObject({ scheme: z.literal("preset").describe("As the channel's preset has it.") })
  .describe("As the channel's `preset` has it; settings that stand here win over those of the preset.");

/** A secret may have a window of validity, so that a new one is in place before the old one ends. */
const secretSchema = z
  .strictObject({
    value: z.string().min(1).max(4_096).describe("The secret itself."),
    name: secretName
      .optional()
      .describe(
        "Only for handshakes that ask for a secret of this name; absent: deliveries are verified with it.",
      ),
    notBefore: z.iso.datetime({ offset: true }).optional().describe("From when on it is valid."),
    notAfter: z.iso.datetime({ offset: true }).optional().describe("When it ends."),
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
  .describe("Requests that are no deliveries, and how they are answered: by the first that fits.");

/** How deliveries are read and answered, as a preset or a channel says. */
export const deliverySettings = {
  readAs: z
    .enum(["application/json", "application/x-www-form-urlencoded"])
    .optional()
    .describe("The Content-Type by which bodies are read, for senders that say another."),
  forms: formReadingSchema
    .optional()
    .describe(
      "How deliveries that come as a form (application/x-www-form-urlencoded) are read, once they are verified as they came. Absent: as the preset says, else by their fields.",
    ),
  answer: z
    .enum(["outcome", "empty"])
    .optional()
    .describe(
      "What a delivery is answered once it is accepted: what became of it, or 200 with no body, for senders that take no other answer. Absent: as the preset says, else outcome.",
    ),
} as const;

/** The settings of every push channel that say who its sender is. */
export const senderSettings = {
  preset: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe(
      "A provider that is known, by its name in the list of presets: verification, handshakes, and where definitions find type and id unless they say so themselves. What the channel sets itself wins. With no definitions at all the channel publishes all that comes as the type received. It stays a name: what a later version knows better of the provider holds for the channel too.",
    ),
  verification: z
    .discriminatedUnion("scheme", [first.settings, ...others.map(({ settings }) => settings), ofPreset])
    .prefault({ scheme: "none" })
    .describe(
      "How the channel knows that a delivery is its sender's. On a channel with a preset, none is the preset's.",
    ),
  secrets: z
    .array(secretSchema)
    .max(16)
    .default([])
    .describe(
      "What the sender signs with; any that is valid will do, so that a new one can come before the old ends.",
    ),
  allowedAddresses: z
    .array(z.string().refine((text) => parseNetwork(text) !== undefined, NO_NETWORK))
    .min(1)
    .max(256)
    .optional()
    .describe(
      "Networks (203.0.113.0/24, 2001:db8::/32) or addresses from which deliveries are taken; all others are answered 401. Beside `verification`, most of all for senders that sign nothing. Behind a proxy these are the clients' addresses only where INLET_TRUST_PROXY names it. Absent: from anywhere.",
    ),
  shadow: z
    .boolean()
    .default(false)
    .describe(
      "true: what is not verified is accepted all the same, and counted; to try settings out on live deliveries.",
    ),
  handshakes: handshakesField.optional(),
  allowHandshakes: z
    .enum(["always", "setup", "never"])
    .default("always")
    .describe("When handshakes are answered; setup: only while the channel lacks its secret."),
  ...deliverySettings,
} as const;

/** Reads them out of any channel's settings; a kind without them is believed, as the gateway asked for what it brings. */
export const senderConfigSchema = z.object(senderSettings);
export type SenderConfig = z.output<typeof senderConfigSchema>;

/** On a channel with a preset nothing said of verification is the preset's, and is shown so. */
export const leaveToPreset = <T extends Pick<SenderConfig, "preset" | "verification">>(config: T): T =>
  config.preset !== undefined && config.verification.scheme === "none"
    ? { ...config, verification: { scheme: "preset" } }
    : config;
