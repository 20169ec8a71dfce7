import { isDeepStrictEqual } from "node:util";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Queryable } from "../../../data/database.ts";
import type { VariableRow } from "../../../data/state-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { createId } from "../../../lib/ids.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import { type Reference, requireRow } from "../../kit/references.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { writeOnce } from "../../kit/resource.ts";
import { type CheckSchemasDeps, requireSchemas } from "./check-schemas.ts";
import { renderVariable, type Variable, type VariableInput, variableInput } from "./schema.ts";

export interface VariableDeps extends CheckSchemasDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}
type Deps = Pick<VariableDeps, "db" | "clock">;

/** A variable's place: its id says nothing without the state. */
export interface VariablePlace {
  readonly stateId: string;
  readonly id: string;
}

const STATES: Reference = { table: "states", prefix: "state", words: "state" };
const TAKEN = "A variable of that name stands in its scope already.";

const states = ownedRows("states", { prefix: "state", entity: "state" });
const rows = ownedRows("variables", { prefix: "var", entity: "variable" });

/**
 * Adds all of them in the order given, or none.
 *
 * @throws ApiError 400 for a schema that is none, 404 without such a state, 409 where a name stands in its scope already, or
 * twice among them
 */
export async function addVariables(
  deps: VariableDeps,
  caller: Caller,
  stateId: string,
  inputs: readonly VariableInput[],
): Promise<void> {
  const { db, clock } = deps;
  await requireSchemas(
    deps,
    inputs.map(({ schema }, index) => ({ path: `[${index}].schema`, schema })),
  );
  const added = db.transaction().execute(async (trx) => {
    await requireRow(trx, caller, STATES, stateId);
    const nowMs = clock();
    const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
    // Of one age, they are listed by their ids.
    const ids = inputs.map(() => createId("var", nowMs)).sort();
    const { organizationId } = caller;
    const variables = inputs.map((input, index) => ({
      ...{ ...input, ...times, stateId, organizationId, id: ids[index] ?? "" },
      schema: textOf(input.schema),
    }));
    await trx.insertInto("variables").values(variables).execute();
    const fields = ["variables"];
    await recordAudit(trx, caller, { action: "update", entity: "state", id: stateId, fields }, nowMs);
  });
  await refuseTaken(TAKEN, added);
}

/** @throws ApiError 404 without such a state */
export async function listVariables(
  { db }: Deps,
  caller: Caller,
  stateId: string,
  page: Page,
): Promise<Listed<Variable>> {
  await states.get(db, caller, stateId);
  const all = db.selectFrom("variables").selectAll().where("stateId", "=", stateId);
  return mapPage(await listPage(all, page), renderVariable);
}

export const getVariable = async ({ db }: Deps, caller: Caller, place: VariablePlace): Promise<Variable> =>
  renderVariable(within(place, await rows.get(db, caller, place.id)));

/** @throws ApiError 400, 404, and 409 where another variable of the scope has the name */
export async function updateVariable(
  deps: VariableDeps,
  caller: Caller,
  place: VariablePlace,
  patch: object,
): Promise<Variable> {
  const { db, clock } = deps;
  return writeOnce(async () => {
    const before = within(place, await rows.get(db, caller, place.id));
    const { name, scopeId, groupIds, tags } = before;
    const input = applyPatch(variableInput, { name, scopeId, groupIds, tags, schema: before.schema }, patch);
    // Not in the transaction, which would wait for the worker with a connection of the pool.
    await requireSchemas(deps, [{ path: "schema", schema: input.schema }]);
    const updated = db.transaction().execute(async (trx) => {
      const row = await rows.lock(trx, caller, place.id);
      if (!isDeepStrictEqual(row, before)) return undefined;
      const content = { ...input, schema: textOf(input.schema) };
      return renderVariable(await rows.update(trx, caller, row, content, clock()));
    });
    return refuseTaken(TAKEN, updated);
  });
}

export async function deleteVariable(
  { db, clock }: Deps,
  caller: Caller,
  place: VariablePlace,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, within(place, await rows.lock(trx, caller, place.id)), clock());
  });
}

/** @throws ApiError 404 for a variable of another state */
function within({ stateId }: VariablePlace, row: VariableRow): VariableRow {
  if (row.stateId !== stateId) throw notFound("variable");
  return row;
}

const textOf = (schema: VariableInput["schema"]): string | null =>
  schema === null ? null : JSON.stringify(schema);
