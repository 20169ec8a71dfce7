import { z } from "zod";
import { hmac } from "./hmac.ts";
import { none } from "./none.ts";
import type { VerificationScheme } from "./verifier.ts";

/** All verification schemes; a new one is its file and its line here. */
export const VERIFICATION_SCHEMES: readonly [VerificationScheme, ...VerificationScheme[]] = [none, hmac];

const [first, ...others] = VERIFICATION_SCHEMES;

/** A secret may have a window of validity, so that a new one is in place before the old one ends. */
const secretSchema = z.strictObject({
  value: z.string().min(1).max(4096).describe("The secret itself."),
  notBefore: z.iso.datetime({ offset: true }).optional().describe("From when on it is valid."),
  notAfter: z.iso.datetime({ offset: true }).optional().describe("When it ends."),
});

/** The settings of every push channel that say who its sender is. */
export const verificationSettings = {
  verification: z
    .discriminatedUnion("scheme", [first.settings, ...others.map((scheme) => scheme.settings)])
    .prefault({ scheme: "none" })
    .describe("How the channel knows that a delivery is its sender's."),
  secrets: z
    .array(secretSchema)
    .max(16)
    .default([])
    .describe(
      "What the sender signs with; any that is valid will do, so that a new one can come before the old ends.",
    ),
} as const;

/** Reads them out of any channel's settings; a kind without them is believed, as the gateway asked for what it brings. */
export const verificationConfigSchema = z.object(verificationSettings);

export type VerificationConfig = z.output<typeof verificationConfigSchema>;

/** True where the scheme needs a secret and the channel has none: its hooks answer 401 until one is set. */
export function lacksSecret({ verification, secrets }: VerificationConfig): boolean {
  return secrets.length === 0 && findScheme(verification).needsSecret;
}

export function findScheme(verification: VerificationConfig["verification"]): VerificationScheme {
  const found = VERIFICATION_SCHEMES.find(({ scheme }) => scheme === verification.scheme);
  if (found === undefined) throw new Error(`unknown verification scheme ${String(verification.scheme)}`);
  return found;
}
