import { z } from "zod";
import { recordAudit } from "../../data/accounts/audit.ts";
import { jsonSchemaDocument } from "../../event/definition.ts";
import type { Caller } from "../../http/context.ts";
import { invalidParameters } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { type Finding, UnavailableError } from "../../lib/errors.ts";
import { createId } from "../../lib/ids.ts";
import type { JsonSchema } from "../../lib/json-schema/compiled-schema.ts";
import { conflictIfTaken } from "../kit/conflicts.ts";
import type { Deps } from "../kit/deps.ts";
import { json, readOnly } from "../kit/field.ts";
import { opaqueIdInput } from "../kit/fields.ts";
import { bounded, toJsonColumn } from "../kit/free-form.ts";
import { requireRow, STATES } from "../kit/references.ts";
import { defineRoute } from "../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../kit/row-limit.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";

const MAX_VARIABLES = 200;
const MAX_WORDS = 100;

declare module "../../data/tables.ts" {
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

const variable = shape({
  prefix: "var",
  fields,
  meta: { id: "Variable", description: "A variable of a state, identified by name and scope." },
});

const variablesInput = z
  .array(variable.input)
  .min(1, "must contain at least one variable")
  .max(MAX_VARIABLES);
type VariableInput = z.output<typeof variable.input>;

const stateReference = z
  .object({ id: id("state") })
  .meta({ id: "StateReference", description: "The state to which the variables were added." });

/** Maximum time to compile a request's schemas, in ms. After a timeout, a retry continues, because compiled schemas stay cached. */
const MAX_CHECK_MS = 20_000;

const taken = {
  when: "the scope already has a variable with this name",
  message: "The scope already has a variable with this name.",
};

export const stateVariables = standardResource({
  path: "/states/:stateId/variables",
  tag: "State",
  name: "variable",
  table: "variables",
  shape: variable,
  audit: "variable",
  within: { param: "stateId", parent: STATES },
  taken,
  async readBody({ schema = null }, deps, caller) {
    await requireSchemas(deps, caller, [{ path: "schema", schema }]);
    return {};
  },
  without: ["create"],
  more: (deps) => [
    defineRoute({
      at: "POST /states/:stateId/variables",
      operation: "addVariables",
      summary: "Add variables to a state",
      description: "Adds all variables or none. The response contains the id of the state.",
      body: variablesInput,
      answer: stateReference,
      creates: true,
      conflict: `${taken.when}, or the body contains the same name twice; or ${ROW_LIMIT_CONFLICT}`,
      async handle({ caller, params: { stateId }, body }) {
        await conflictIfTaken(taken.message, addVariables(deps, caller, stateId, body));
        return { id: stateId };
      },
    }),
  ],
});

/** Adds all variables or none, in the given order. @throws ApiError 400 for an invalid schema; 404 for an unknown state */
async function addVariables(
  deps: Deps,
  caller: Caller,
  stateId: string,
  inputs: readonly VariableInput[],
): Promise<void> {
  const { db, clock, requireRoom } = deps;
  await requireSchemas(
    deps,
    caller,
    inputs.map(({ schema }, index) => ({ path: `[${index}].schema`, schema })),
  );
  await db.transaction().execute(async (trx) => {
    await requireRow(trx, caller, STATES, stateId);
    const inside = { table: "states", column: "stateId" };
    await requireRoom(trx, caller, { table: "variables", words: "variables", inside }, inputs.length);
    const nowMs = clock();
    const [createdAt, updatedAt] = [new Date(nowMs), new Date(nowMs)];
    const { organizationId } = caller;
    // Sort the new ids, so that lists show the variables in the given order. Lists sort by creation time, which is equal here, then by id.
    const ids = inputs.map(() => createId("var", nowMs)).sort();
    const variables = inputs.map((input, index) => {
      const schema = toJsonColumn(input.schema);
      return { ...input, schema, stateId, organizationId, id: ids[index] ?? "", createdAt, updatedAt };
    });
    await trx.insertInto("variables").values(variables).execute();
    const fields = ["variables"];
    await recordAudit(trx, caller, { action: "update", entity: "state", id: stateId, fields }, nowMs);
  });
}

/**
 * Compiles schemas one at a time, so that a large request does not delay other compilations.
 * @throws ApiError 400 with the path of each invalid schema, such as `[3].schema/properties/a`; UnavailableError on a timeout
 */
async function requireSchemas(
  { schemas, stopping }: Deps,
  { organizationId: lane }: { readonly organizationId: string },
  sources: readonly { readonly path: string; readonly schema: JsonSchema | null }[],
): Promise<void> {
  const timeout = AbortSignal.timeout(MAX_CHECK_MS);
  const signal = AbortSignal.any([stopping, timeout]);
  const findings: Finding[] = [];
  for (const { path, schema } of sources) {
    if (schema === null) continue;
    const found = await schemas.check(schema, { signal, lane }).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new UnavailableError("the schemas did not compile in time", { cause: error });
    });
    findings.push(...found.map((one) => ({ path: path + one.path, message: one.message })));
  }
  if (findings.length > 0) throw invalidParameters(findings);
}
