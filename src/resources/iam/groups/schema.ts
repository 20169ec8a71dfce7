import { z } from "zod";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";

export const groupInput = z.strictObject({
  name: nameInput.meta({ example: "Support" }),
  members: z
    .array(z.string())
    .max(1_000)
    .default([])
    .meta({ description: "The ids of the accounts in it.", example: [] }),
});
export type GroupInput = z.output<typeof groupInput>;

export const groupPatch = patchOf(groupInput);
