import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { createRecord, deleteRecord, getRecord, listRecords, updateRecord } from "./queries.ts";
import { recordInput, recordPatch, recordSchema } from "./schema.ts";

const record = standardRoutes({
  name: "record",
  prefix: "rec",
  entity: recordSchema,
  within: { collectionId: pathId("col", "collection") },
});
const description =
  "Values are checked by the collection's fields: what names no field, does not fit, or is missing and required is a 400 that names `values.<field>`.";
const conflict = "another record has the same value of a unique field";

/** The records of a collection, in order of their making. */
export const collectionRecords: Resource<RowDeps> = {
  path: "/collections/:collectionId/records",
  tag: "Collections",
  routes: (deps) => [
    record.create({ body: recordInput, description, conflict }, ({ caller, within, body }) =>
      createRecord(deps, caller, within.collectionId, body),
    ),
    record.list(({ caller, within, page }) => listRecords(deps, caller, within.collectionId, page)),
    record.get(({ caller, within, id }) => getRecord(deps, caller, { ...within, id })),
    record.update(
      { body: recordPatch, description: `The values are replaced whole. ${description}`, conflict },
      ({ caller, within, id, patch }) => updateRecord(deps, caller, { ...within, id }, patch),
    ),
    record.remove({}, ({ caller, within, id }) => deleteRecord(deps, caller, { ...within, id })),
  ],
};
