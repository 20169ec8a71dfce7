import { z } from "zod";
import { accountIdInput, textInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";

const MAX_INFO_CHARS = 16_384;

/** What can be changed of an identity. */
export const identityContent = z.strictObject({
  provider: z
    .string()
    .min(1)
    .max(255)
    .default("org")
    .meta({ description: "An OIDC issuer, or `org`: the organization's own naming.", example: "org" }),
  identifier: z
    .string()
    .min(1)
    .max(255)
    .meta({ description: "Who it is to the provider: an OIDC issuer's `sub`.", example: "ada" }),
  email: z.email().max(255).nullable().default(null).meta({ example: "ada@example.com" }),
  phone: textInput,
  info: z
    .unknown()
    .refine(
      (info) => (JSON.stringify(info) ?? "").length <= MAX_INFO_CHARS,
      `must be ${MAX_INFO_CHARS} characters of JSON at most`,
    )
    .default(null)
    .meta({ description: "Anything, or null." }),
});

export const identityInput = z.strictObject({ accountId: accountIdInput, ...identityContent.shape });
export type IdentityInput = z.output<typeof identityInput>;

export const identityPatch = patchOf(identityContent);
