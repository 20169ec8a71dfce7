import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { given } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import { BLUEPRINTS } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { plansOf } from "../../store/store-entities.ts";
import { ownStores, visibleArtifacts } from "../../store/store-scope.ts";
import { offer, offerAgain } from "./offers.ts";
import { type ArtifactRow, artifact, artifactFilters } from "./schema.ts";

/** Decisions of a store's organization about artifacts of these statuses. */
const DECISIONS = [
  {
    action: "approve",
    status: "published",
    from: ["pending", "rejected"],
    summary: "Publish an artifact that was submitted to a store",
    description: "Done by the organization of the store.",
  },
  {
    action: "reject",
    status: "rejected",
    from: ["pending", "published"],
    summary: "Refuse an artifact that was submitted to a store, or take it down",
    description: "Done by the organization of the store. What was ordered or installed stays.",
  },
] as const;

/** Artifacts: what stores offer. */
export const artifacts = standardResource({
  path: "/stores/artifacts",
  tag: "Store",
  name: "artifact",
  table: "artifacts",
  shape: artifact,
  audit: "artifact",
  references: { blueprintId: BLUEPRINTS },
  inUse: { when: "there are orders of it", message: "There are orders of the artifact." },
  visible: visibleArtifacts,
  changeable: (db, caller) =>
    db
      .selectFrom("artifacts")
      .where((eb) =>
        eb.or([
          eb("organizationId", "=", caller.organizationId),
          eb("offeredIn", "in", ownStores(db, caller)),
        ]),
      ),
  filters: {
    query: artifactFilters,
    find(db, caller, { storeId, categoryId, status }) {
      const isOwn = storeId === undefined && categoryId === undefined;
      const { organizationId } = caller;
      const all = isOwn
        ? db.selectFrom("artifacts").where("organizationId", "=", organizationId)
        : visibleArtifacts(db, caller);
      return all.where((eb) => eb.and(given({ offeredIn: storeId, categoryId, status })));
    },
  },
  async inside(db, rows) {
    const plans = await plansOf(
      db,
      rows.map(({ id }) => id),
    );
    return ({ id, offeredIn }) => ({ storeId: offeredIn, pricingPlans: plans.get(id) ?? [] });
  },
  readAside: async (_, { offeredIn }) => ({ storeId: offeredIn }),
  async prepare({ trx, caller, before, values }) {
    if (before) requireOwn(caller, before);
    const status = await (before ? offerAgain(trx, caller, before, values) : offer(trx, caller, values));
    return { status, offeredIn: values.storeId };
  },
  async remove({ caller, row, remove }) {
    requireOwn(caller, row);
    await remove();
  },
  notes: {
    create: {
      description:
        "One of kind `blueprint` can be installed. In a store of the caller's organization it is published at once. A public store that allows submissions takes it of other organizations too: `pending`, and published once it is approved, if the store requires that, else at once.",
      missing: "the blueprint, the store or its category is not there",
      conflict: "the store is another organization's and takes no submissions",
    },
    get: {
      description:
        "One of the caller's organization, one in its stores, or a published one of a public store.",
    },
    update: {
      description:
        "What is in a store of another organization becomes `pending` again when kind, title, description or blueprint change, if it was rejected or the store requires approval.",
      missing: "it, or the blueprint, the store or its category is not there",
      conflict:
        "it has orders or reviews and would leave its store, or the new store is another organization's and takes no submissions",
    },
    delete: { description: "With its plans and reviews. What was installed from it stays." },
  },
  more: (_, { change }) =>
    DECISIONS.map(({ action, status, from, summary, description }) =>
      defineRoute(
        {
          method: "post",
          path: `/:artifactId/${action}`,
          operation: `${action}Artifact`,
          summary,
          description,
          params: { artifactId: pathId("art", "artifact") },
          body: z.strictObject({}),
          answer: artifact.entity,
          conflict: `it is in no store, or ${status} already`,
        },
        ({ caller, params: { artifactId } }) =>
          change(
            caller,
            artifactId,
            async ({ trx, before }) => {
              await requireOwnStore(trx, caller, before);
              if (!from.some((one) => one === before.status))
                throw conflict(`The artifact is ${before.status}.`);
              return { status };
            },
            action,
          ),
      ),
    ),
});

/** @throws ApiError 404 for the organization of its store, which decides about it but changes nothing else */
function requireOwn({ organizationId }: Caller, row: ArtifactRow): void {
  if (row.organizationId !== organizationId) throw notFound("artifact");
}

/** @throws ApiError 409 where it is in no store, 403 where that is another organization's */
async function requireOwnStore(db: Queryable, caller: Caller, { offeredIn }: ArtifactRow): Promise<void> {
  if (offeredIn === null) throw conflict("The artifact is in no store.");
  const store = await ownStores(db, caller).where("id", "=", offeredIn).executeTakeFirst();
  if (!store)
    throw new ApiError("permission_denied", "Only the organization of its store decides about an artifact.");
}
