import { z } from "zod";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";

export const spaceInput = z.strictObject({ name: nameInput.meta({ example: "Production" }) });
export type SpaceInput = z.output<typeof spaceInput>;

export const spacePatch = patchOf(spaceInput);
