import { z } from "zod";
import { accountIdInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { grantInput } from "../iam-grants.ts";

/** What can be changed of a membership. */
export const membershipContent = z.strictObject({
  role: z.int().min(0).max(2_147_483_647).default(0).meta({ description: "A rank. It grants nothing." }),
  ...grantInput,
});

export const membershipInput = z.strictObject({ accountId: accountIdInput, ...membershipContent.shape });
export type MembershipInput = z.output<typeof membershipInput>;

export const membershipPatch = patchOf(membershipContent);
