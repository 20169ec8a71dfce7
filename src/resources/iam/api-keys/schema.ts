import { z } from "zod";
import { accountIdInput, nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { grantInput } from "../iam-grants.ts";

const expiresAt = z.iso
  .datetime({ offset: true })
  .nullable()
  .default(null)
  .meta({ description: "From then on it lets nobody in.", example: "2030-01-31T09:30:00.000Z" });
const space = z.string().nullable().meta({ description: "A space of the organization.", example: null });

/** What can be changed of a key. */
export const apiKeyContent = z.strictObject({
  name: nameInput.meta({ example: "Deployment" }),
  defaultSpaceId: space.default(null),
  ...grantInput,
  expiresAt,
});

export const apiKeyInput = z.strictObject({
  ...apiKeyContent.shape,
  defaultSpaceId: space.optional().meta({ description: "Default: the caller's.", example: null }),
  accountId: accountIdInput
    .optional()
    .meta({ description: "Who calls with it. Default: a new service account of the key's name." }),
});
export type ApiKeyInput = z.output<typeof apiKeyInput>;

export const apiKeyPatch = patchOf(apiKeyContent);
