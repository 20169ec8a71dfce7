import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import {
  addVariables,
  deleteVariable,
  getVariable,
  listVariables,
  updateVariable,
  type VariableDeps,
} from "./queries.ts";
import { stateReference, variablePatch, variableSchema, variablesInput } from "./schema.ts";

const within = { stateId: pathId("state", "state") };
const variable = standardRoutes({ name: "variable", prefix: "var", entity: variableSchema, within });
const taken = "a variable of that name stands in its scope already";

/** The variables of a state. */
export const stateVariables: Resource<VariableDeps> = {
  path: "/states/:stateId/variables",
  tag: "State",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "addVariables",
        summary: "Add variables to a state",
        description: "All of them, or none. The answer is the state's id.",
        params: within,
        body: variablesInput,
        answer: stateReference,
        creates: true,
        conflict: `${taken}, or twice in the body`,
      },
      async ({ caller, params, body }) => {
        await addVariables(deps, caller, params.stateId, body);
        return { id: params.stateId };
      },
    ),
    variable.list(({ caller, within, page }) => listVariables(deps, caller, within.stateId, page)),
    variable.get(({ caller, within, id }) => getVariable(deps, caller, { ...within, id })),
    variable.update({ body: variablePatch, conflict: taken }, ({ caller, within, id, patch }) =>
      updateVariable(deps, caller, { ...within, id }, patch),
    ),
    variable.remove({}, ({ caller, within, id }) => deleteVariable(deps, caller, { ...within, id })),
  ],
};
