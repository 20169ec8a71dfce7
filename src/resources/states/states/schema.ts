import { z } from "zod";
import type { StateRow } from "../../../data/state-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

export const stateInput = z.strictObject({
  name: nameInput.meta({ example: "Checkout" }),
  description: z.string().max(4_096).nullable().default(null),
});

export const statePatch = patchOf(stateInput);

/** The state as the API answers it. */
export const stateSchema = z
  .object({
    id: id("state"),
    name: z.string(),
    description: z.string().nullable(),
    organizationId: id("org"),
    ...times,
  })
  .meta({ id: "State", description: "A set of variables, and what values they may have." });
export type State = Shown<z.output<typeof stateSchema>>;

export function renderState(row: StateRow): State {
  const { id, name, description, organizationId } = row;
  return { id, name, description, organizationId, ...timesOf(row) };
}
