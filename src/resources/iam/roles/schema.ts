import { z } from "zod";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { permissionsInput } from "../iam-grants.ts";

export const roleInput = z.strictObject({
  name: nameInput,
  description: z.string().max(4_096).nullable().default(null),
  permissions: permissionsInput,
});
export type RoleInput = z.output<typeof roleInput>;

export const rolePatch = patchOf(roleInput);
