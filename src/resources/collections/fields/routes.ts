import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { createField, deleteField, getField, listFields, updateField } from "./queries.ts";
import { fieldInput, fieldPatch, fieldSchema } from "./schema.ts";

const field = standardRoutes({
  name: "field",
  prefix: "fld",
  entity: fieldSchema,
  within: { collectionId: pathId("col", "collection") },
});
const taken = "the collection has a field of that name already";

/** What each record of a collection may have a value of. */
export const collectionFields: Resource<RowDeps> = {
  path: "/collections/:collectionId/fields",
  tag: "Collections",
  routes: (deps) => [
    field.create(
      {
        body: fieldInput,
        description: "Records that are there have no value of it; a collection has 100 fields at most.",
        conflict: `${taken}, or a hundred fields, or it has records and the field is required`,
      },
      ({ caller, within, body }) => createField(deps, caller, within.collectionId, body),
    ),
    field.list(({ caller, within, page }) => listFields(deps, caller, within.collectionId, page)),
    field.get(({ caller, within, id }) => getField(deps, caller, { ...within, id })),
    field.update(
      {
        body: fieldPatch,
        description: "By another name, it has the values that it had.",
        conflict: `${taken}, or there are records that have values of it and it changes its kind, that have chosen an option which goes, that lack a value and it becomes required, or that have the same value and it becomes unique`,
      },
      ({ caller, within, id, patch }) => updateField(deps, caller, { ...within, id }, patch),
    ),
    field.remove({ description: "All records lose their value of it." }, ({ caller, within, id }) =>
      deleteField(deps, caller, { ...within, id }),
    ),
  ],
};
