import { z } from "zod";
import { nameInput, opaqueIdInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { newApiKeySchema, organizationSchema } from "../iam-entities.ts";

export const organizationInput = z.strictObject({
  name: nameInput.meta({ example: "Example" }),
  iamId: opaqueIdInput,
  tenantId: opaqueIdInput,
  logoAssetId: opaqueIdInput,
});
export type OrganizationInput = z.output<typeof organizationInput>;

export const organizationPatch = patchOf(organizationInput);

export const newOrganizationSchema = organizationSchema.extend({ apiKey: newApiKeySchema }).meta({
  id: "NewOrganization",
  description: "An organization with its first API key, which may do all in it.",
});
