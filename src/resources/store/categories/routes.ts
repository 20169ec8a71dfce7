import { listOf } from "../../kit/answer.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { createCategory, deleteCategory, getCategory, listCategories, updateCategory } from "./queries.ts";
import { categoriesQuery, categoryInput, categoryPatch, categorySchema } from "./schema.ts";

const category = standardRoutes({
  name: "category",
  plural: "categories",
  words: "store category",
  prefix: "cat",
  entity: categorySchema,
});
const taken = "the store has a category of that name already";

/** The categories of stores; whoever sees a store sees them. */
export const storeCategories: Resource<RowDeps> = {
  path: "/stores/categories",
  tag: "Store",
  routes: (deps) => [
    category.create({ body: categoryInput, missing: "the store is not there", conflict: taken }, (input) =>
      createCategory(deps, input.caller, input.body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listCategories",
        summary: "List the store categories",
        query: categoriesQuery,
        answer: listOf(categorySchema),
      },
      ({ caller, query }) => listCategories(deps, caller, query),
    ),
    category.get(({ caller, id }) => getCategory(deps, caller, id), {
      description: "One of a store of the caller's organization, or of a public one.",
    }),
    category.update({ body: categoryPatch, conflict: taken }, ({ caller, id, patch }) =>
      updateCategory(deps, caller, id, patch),
    ),
    category.remove({ conflict: "there are artifacts in it" }, ({ caller, id }) =>
      deleteCategory(deps, caller, id),
    ),
  ],
};
