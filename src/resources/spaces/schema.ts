import { z } from "zod";
import { nameInput } from "../iam-fields.ts";
import { patchOf } from "../merge.ts";

export const spaceInput = z.strictObject({ name: nameInput.meta({ example: "Production" }) });
export type SpaceInput = z.output<typeof spaceInput>;

export const spacePatch = patchOf(spaceInput);
