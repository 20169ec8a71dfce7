import type { Queryable } from "../../data/database.ts";
import type { Clock } from "../../lib/clock.ts";
import { applyPatch, patchOf } from "../merge.ts";
import { ownedRows } from "../owned-rows.ts";
import { BLUEPRINTS, requireRow } from "../references.ts";
import type { Resource } from "../resource.ts";
import { standardRoutes } from "../standard-routes.ts";
import { artifactInputSchema, artifactSchema, renderArtifact } from "./schema.ts";

export interface ArtifactDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

const rows = ownedRows("artifacts", { prefix: "art", entity: "artifact" });
const artifact = standardRoutes({ name: "artifact", prefix: "art", entity: artifactSchema });

/** Artifacts: what a store offers. */
export const artifacts: Resource<ArtifactDeps> = {
  path: "/stores/artifacts",
  tag: "Store",
  routes: ({ db, clock }) => [
    artifact.create(
      {
        body: artifactInputSchema,
        description: "One of kind `blueprint` can be installed.",
        missing: "the blueprint is not there",
      },
      ({ caller, body }) =>
        db.transaction().execute(async (trx) => {
          await requireRow(trx, caller, BLUEPRINTS, body.blueprintId);
          return renderArtifact(await rows.insert(trx, caller, body, clock()));
        }),
    ),
    artifact.list(async ({ caller, page }) => {
      const { items, total } = await rows.list(db, caller, page);
      return { items: items.map(renderArtifact), total };
    }),
    artifact.get(async ({ caller, id }) => renderArtifact(await rows.get(db, caller, id))),
    artifact.update({ body: patchOf(artifactInputSchema) }, ({ caller, id, patch }) =>
      db.transaction().execute(async (trx) => {
        const row = await rows.lock(trx, caller, id);
        const { kind, title, description, blueprintId, storeId, price, currency } = row;
        const before = { kind, title, description, blueprintId, storeId, price, currency };
        const content = applyPatch(artifactInputSchema, before, patch);
        await requireRow(trx, caller, BLUEPRINTS, content.blueprintId);
        return renderArtifact(await rows.update(trx, caller, row, content, clock()));
      }),
    ),
    artifact.remove({ description: "What was installed from it stays." }, ({ caller, id }) =>
      db.transaction().execute(async (trx) => {
        await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
      }),
    ),
  ],
};
