import { listOf } from "../../kit/answer.ts";
import { withoutId } from "../../kit/merge.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { createStore, deleteStore, getStore, listStores, updateStore } from "./queries.ts";
import { storeInput, storePatch, storeSchema, storesQuery } from "./schema.ts";

const store = standardRoutes({ name: "store", prefix: "store", entity: storeSchema });

/** Stores, each of one organization, and open to all where it is public. */
export const stores: Resource<RowDeps> = {
  path: "/stores",
  tag: "Store",
  routes: (deps) => [
    store.create({ body: storeInput }, ({ caller, body }) => createStore(deps, caller, body)),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listStores",
        summary: "List the stores",
        query: storesQuery,
        answer: listOf(storeSchema),
      },
      ({ caller, query }) => listStores(deps, caller, query),
    ),
    store.get(({ caller, id }) => getStore(deps, caller, id), {
      description: "One of the caller's organization, or a public one.",
    }),
    store.update(
      {
        body: storePatch,
        description:
          "`id` repeats the path's. What is published stays so when `requireApproval` changes, and orders keep the commission that they were made with.",
      },
      ({ caller, id, patch }) => updateStore(deps, caller, id, withoutId(id, patch)),
    ),
    store.remove(
      { description: "With its categories.", conflict: "there are artifacts in it, or orders of it" },
      ({ caller, id }) => deleteStore(deps, caller, id),
    ),
  ],
};
