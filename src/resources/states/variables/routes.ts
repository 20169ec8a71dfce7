import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Caller } from "../../../http/context.ts";
import { createId } from "../../../lib/ids.ts";
import { conflictIfTaken } from "../../kit/conflicts.ts";
import { toJsonColumn } from "../../kit/free-form.ts";
import { pathId } from "../../kit/params.ts";
import { requireRow, STATES } from "../../kit/references.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { type CheckSchemasDeps, requireSchemas } from "./check-schemas.ts";
import { stateReference, type VariableInput, variable, variablesInput } from "./schema.ts";

export type VariableDeps = RowDeps & CheckSchemasDeps;

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
  async readBody({ schema = null }, deps: VariableDeps, caller) {
    await requireSchemas(deps, caller, [{ path: "schema", schema }]);
    return {};
  },
  without: ["create"],
  more: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "addVariables",
        summary: "Add variables to a state",
        description: "Adds all variables or none. The response contains the id of the state.",
        params: { stateId: pathId("state", "state") },
        body: variablesInput,
        answer: stateReference,
        creates: true,
        conflict: `${taken.when}, or the body contains the same name twice; or ${ROW_LIMIT_CONFLICT}`,
      },
      async ({ caller, params: { stateId }, body }) => {
        await conflictIfTaken(taken.message, addVariables(deps, caller, stateId, body));
        return { id: stateId };
      },
    ),
  ],
});

/** Adds all variables or none, in the given order. @throws ApiError 400 for an invalid schema; 404 for an unknown state */
async function addVariables(
  { db, clock, requireRoom, ...deps }: VariableDeps,
  caller: Caller,
  stateId: string,
  inputs: readonly VariableInput[],
): Promise<void> {
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
