import { z } from "zod";
import { createAnyOf } from "./schemes/any-of.ts";
import { asymmetric } from "./schemes/asymmetric.ts";
import { hmac } from "./schemes/hmac.ts";
import { jwt } from "./schemes/jwt.ts";
import { none } from "./schemes/none.ts";
import { standardWebhooks } from "./schemes/standard-webhooks.ts";
import { token } from "./schemes/token.ts";
import type { VerificationScheme } from "./verifier.ts";

/** The ways to know a sender; a new one is its file and its line here. */
const WAYS: readonly [VerificationScheme, ...VerificationScheme[]] = [
  hmac,
  standardWebhooks,
  asymmetric,
  jwt,
  token,
];

/** All verification schemes. */
export const VERIFICATION_SCHEMES: typeof WAYS = [none, ...WAYS, createAnyOf(WAYS)];

const [first, ...others] = VERIFICATION_SCHEMES;

/** The settings of any scheme. */
export const verificationSchema = z.discriminatedUnion("scheme", [
  first.settings,
  ...others.map(({ settings }) => settings),
]);
export type VerificationSettings = z.output<typeof verificationSchema>;

export function findScheme({ scheme }: { readonly scheme?: unknown }): VerificationScheme {
  const found = VERIFICATION_SCHEMES.find((one) => one.scheme === scheme);
  if (found === undefined) throw new Error(`unknown verification scheme ${String(scheme)}`);
  return found;
}
