import type { Queryable } from "../../../data/database.ts";
import type { Clock } from "../../../lib/clock.ts";
import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { renderState, stateInput, statePatch, stateSchema } from "./schema.ts";

export interface StateDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

const rows = ownedRows("states", { prefix: "state", entity: "state" });
const state = standardRoutes({ name: "state", prefix: "state", entity: stateSchema });

/** States: sets of variables. */
export const states: Resource<StateDeps> = {
  path: "/states",
  tag: "State",
  routes: ({ db, clock }) => [
    state.create({ body: stateInput }, async ({ caller, body }) =>
      renderState(await db.transaction().execute((trx) => rows.insert(trx, caller, body, clock()))),
    ),
    state.list(async ({ caller, page }) => mapPage(await rows.list(db, caller, page), renderState)),
    state.get(async ({ caller, id }) => renderState(await rows.get(db, caller, id))),
    state.update({ body: statePatch }, ({ caller, id, patch }) =>
      db.transaction().execute(async (trx) => {
        const row = await rows.lock(trx, caller, id);
        const { name, description } = row;
        const input = applyPatch(stateInput, { name, description }, patch);
        return renderState(await rows.update(trx, caller, row, input, clock()));
      }),
    ),
    state.remove({ description: "Its variables go with it." }, ({ caller, id }) =>
      db.transaction().execute(async (trx) => {
        await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
      }),
    ),
  ],
};
