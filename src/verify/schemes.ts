import { z } from "zod";
import { createAnyOf } from "./schemes/any-of.ts";
import { asymmetric } from "./schemes/asymmetric.ts";
import { hmac } from "./schemes/hmac.ts";
import { jwt } from "./schemes/jwt.ts";
import { none } from "./schemes/none.ts";
import { standardWebhooks } from "./schemes/standard-webhooks.ts";
import { token } from "./schemes/token.ts";
import type { VerificationScheme } from "./verifier.ts";

/** Verification schemes that check a single credential or signature. To add a scheme, add a file and a line here. */
const SINGLE_SCHEMES: readonly [VerificationScheme, ...VerificationScheme[]] = [
  hmac,
  standardWebhooks,
  asymmetric,
  jwt,
  token,
];

export const VERIFICATION_SCHEMES: typeof SINGLE_SCHEMES = [
  none,
  ...SINGLE_SCHEMES,
  createAnyOf(SINGLE_SCHEMES),
];

const [first, ...others] = VERIFICATION_SCHEMES;

export const verificationSchema = z.discriminatedUnion("scheme", [
  first.configSchema,
  ...others.map(({ configSchema }) => configSchema),
]);
export type VerificationConfig = z.output<typeof verificationSchema>;

export function findScheme({ scheme }: { readonly scheme?: unknown }): VerificationScheme {
  const found = VERIFICATION_SCHEMES.find((one) => one.scheme === scheme);
  if (found === undefined) throw new Error(`unknown verification scheme ${String(scheme)}`);
  return found;
}
