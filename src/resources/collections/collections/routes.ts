import { mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { collectionInput, collectionPatch, collectionSchema, renderCollection } from "./schema.ts";

const rows = ownedRows("collections", { prefix: "col", entity: "collection" });
const collection = standardRoutes({ name: "collection", prefix: "col", entity: collectionSchema });

/** Collections: records that have the same fields. */
export const collections: Resource<RowDeps> = {
  path: "/collections",
  tag: "Collections",
  routes: ({ db, clock }) => [
    collection.create({ body: collectionInput }, async ({ caller, body }) =>
      renderCollection(await db.transaction().execute((trx) => rows.insert(trx, caller, body, clock()))),
    ),
    collection.list(async ({ caller, page }) => mapPage(await rows.list(db, caller, page), renderCollection)),
    collection.get(async ({ caller, id }) => renderCollection(await rows.get(db, caller, id))),
    collection.update({ body: collectionPatch }, ({ caller, id, patch }) =>
      db.transaction().execute(async (trx) => {
        const before = await rows.lock(trx, caller, id);
        const { name, description } = before;
        const content = applyPatch(collectionInput, { name, description }, patch);
        return renderCollection(await rows.update(trx, caller, before, content, clock()));
      }),
    ),
    collection.remove(
      { description: "With its fields and records.", conflict: "a knowledge base has it" },
      ({ caller, id }) => {
        const deleted = db.transaction().execute(async (trx) => {
          await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
        });
        return refuseInUse("Knowledge bases have the collection.", deleted);
      },
    ),
  ],
};
