import { z } from "zod";
import { jsonSchemaDocument } from "../../../event/definition.ts";
import { id } from "../../../http/fields.ts";
import { json, readOnly } from "../../kit/field.ts";
import { opaqueIdInput } from "../../kit/fields.ts";
import { bounded } from "../../kit/free-form.ts";
import { shape, type TableOf } from "../../kit/shape.ts";

const MAX_VARIABLES = 200;
const MAX_WORDS = 100;

declare module "../../../data/tables.ts" {
  interface Tables {
    variables: TableOf<typeof fields>;
  }
}

const words = z.array(z.string().min(1).max(255)).max(MAX_WORDS).default([]);
const schema = bounded(jsonSchemaDocument).nullable().meta({
  description: "A JSON Schema of draft 2020-12 or draft-07, selected by `$schema`. `null` allows any value.",
});

const fields = {
  stateId: readOnly(id("state")),
  name: z.string().min(1).max(255).meta({ example: "language" }),
  scopeId: opaqueIdInput.meta({
    description: "The scope in which the name is unique. `null` is a scope too. Stored as given.",
  }),
  groupIds: words.meta({
    description: "The groups that the variable belongs to. Stored as given.",
    example: [],
  }),
  tags: words.meta({ example: [] }),
  schema: json(schema.default(null), schema),
};

export const variable = shape({
  prefix: "var",
  fields,
  meta: { id: "Variable", description: "A variable of a state, identified by name and scope." },
});

export const variablesInput = z
  .array(variable.input)
  .min(1, "must contain at least one variable")
  .max(MAX_VARIABLES);
export type VariableInput = z.output<typeof variable.input>;

export const stateReference = z
  .object({ id: id("state") })
  .meta({ id: "StateReference", description: "The state to which the variables were added." });
