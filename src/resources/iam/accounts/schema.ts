import { z } from "zod";
import { nameInput, opaqueIdInput, textInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { ACCOUNT_STATUSES } from "../iam-entities.ts";

const details = {
  name: nameInput.meta({ example: "Ada Lovelace" }),
  firstName: textInput,
  lastName: textInput,
  language: textInput.meta({ example: "en" }),
  agentIdentifier: textInput,
  appUid: textInput,
  platformIdentityId: opaqueIdInput,
  profilePictureAssetId: opaqueIdInput,
};

export const accountInput = z.strictObject({
  ...details,
  isService: z.boolean().default(false),
  status: z.enum(["pending", "active"]).default("pending"),
});
export type AccountInput = z.output<typeof accountInput>;

/** What can be changed of an account. */
export const accountContent = z.strictObject({ ...details, status: z.enum(ACCOUNT_STATUSES) });

export const accountPatch = patchOf(accountContent);
