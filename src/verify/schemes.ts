import { z } from "zod";
import { createAnyOf } from "./any-of.ts";
import { asymmetric } from "./asymmetric.ts";
import { hmac } from "./hmac.ts";
import { jwt } from "./jwt.ts";
import { none } from "./none.ts";
import { standardWebhooks } from "./standard-webhooks.ts";
import { token } from "./token.ts";
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
