import { z } from "zod";
import type { VariableRow } from "../../../data/state-tables.ts";
import { jsonSchemaDocument } from "../../../event/definition.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { opaqueIdInput } from "../../kit/fields.ts";
import { bounded } from "../../kit/free-form.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

const MAX_VARIABLES = 200;
const MAX_WORDS = 100;

const words = z.array(z.string().min(1).max(255)).max(MAX_WORDS);
const schema = bounded(jsonSchemaDocument)
  .nullable()
  .meta({ description: "A JSON Schema of draft 2020-12 or draft-07 (`$schema`); null: any value." });

/** A variable as it is defined, and what a patched one must still be. */
export const variableInput = z.strictObject({
  name: z.string().min(1).max(255).meta({ example: "language" }),
  scopeId: opaqueIdInput.meta({
    description: "What the name is unique in; null is a scope as well. Stored as given.",
  }),
  groupIds: words
    .default([])
    .meta({ description: "What the variable belongs to. Stored as given.", example: [] }),
  tags: words.default([]).meta({ example: [] }),
  schema: schema.default(null),
});
export type VariableInput = z.output<typeof variableInput>;

export const variablesInput = z
  .array(variableInput)
  .min(1, "must hold at least one variable")
  .max(MAX_VARIABLES);
export const variablePatch = patchOf(variableInput);

/** What adding variables answers. */
export const stateReference = z
  .object({ id: id("state") })
  .meta({ id: "StateReference", description: "The state that was added to." });

/** The variable as the API answers it. */
export const variableSchema = z
  .object({
    id: id("var"),
    stateId: id("state"),
    name: z.string(),
    scopeId: z.string().nullable(),
    groupIds: z.array(z.string()),
    tags: z.array(z.string()),
    schema,
    ...times,
  })
  .meta({ id: "Variable", description: "One value of a state, by its name and scope." });
export type Variable = Shown<z.output<typeof variableSchema>>;

export function renderVariable(row: VariableRow): Variable {
  const { id, stateId, name, scopeId, groupIds, tags, schema } = row;
  return { id, stateId, name, scopeId, groupIds, tags, schema, ...timesOf(row) };
}
