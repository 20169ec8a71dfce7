import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import { BLUEPRINTS } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { AWAITS_APPROVAL, blueprintNow, needsApproval } from "../../store/approved-blueprints.ts";
import { plansOf } from "../../store/store-entities.ts";
import { ownStores, visibleArtifacts } from "../../store/store-scope.ts";
import { offer, offerAgain } from "./offers.ts";
import {
  type ArtifactRow,
  approveSchema,
  artifact,
  artifactFilters,
  offeredBlueprintSchema,
} from "./schema.ts";

const params = { artifactId: pathId("art", "artifact") };

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
  changeable: (db, caller) => changeable(db, caller),
  filters: {
    query: artifactFilters,
    find(db, caller, { storeId, categoryId, status, awaitsApproval }) {
      const isOwn = storeId === undefined && categoryId === undefined;
      const { organizationId } = caller;
      const all = isOwn
        ? db.selectFrom("artifacts").where("organizationId", "=", organizationId)
        : visibleArtifacts(db, caller);
      const found = all.where((eb) => eb.and(omitUndefined({ offeredIn: storeId, categoryId, status })));
      return awaitsApproval ? found.where(AWAITS_APPROVAL) : found;
    },
  },
  async inside(db, rows) {
    const ids = rows.map(({ id }) => id);
    const plans = await plansOf(db, ids);
    const awaiting = await db
      .selectFrom("artifacts")
      .select("id")
      .where("id", "in", ids)
      .where(AWAITS_APPROVAL)
      .execute();
    return ({ id, offeredIn, approved }) => ({
      storeId: offeredIn,
      pricingPlans: plans.get(id) ?? [],
      approvedVersion: approved?.version ?? null,
      awaitsApproval: awaiting.some((one) => one.id === id),
    });
  },
  readAside: async (_, { offeredIn }) => ({ storeId: offeredIn }),
  async prepare({ trx, caller, before, values }) {
    if (before) requireOwn(caller, before);
    const status = await (before ? offerAgain(trx, caller, before, values) : offer(trx, caller, values));
    const isSame = before?.offeredIn === values.storeId && before.blueprintId === values.blueprintId;
    return { status, offeredIn: values.storeId, approved: isSame ? before.approved : null };
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
        "A change of its blueprint alone takes nothing down: where the store requires approval, others go on with the approved version. What is in a store of another organization becomes `pending` again when kind, title, description or blueprint change, if it was rejected or the store requires approval.",
      missing: "it, or the blueprint, the store or its category is not there",
      conflict:
        "it has orders or reviews and would leave its store, or the new store is another organization's and takes no submissions",
    },
    delete: { description: "With its plans and reviews. What was installed from it stays." },
  },
  more: ({ db }, { change }) => [
    defineRoute(
      {
        method: "get",
        path: "/:artifactId/blueprint",
        operation: "getArtifactBlueprint",
        summary: "Get the blueprint of an artifact as it stands to be approved",
        description: "For the organization of the artifact, and for that of its store.",
        params,
        answer: offeredBlueprintSchema,
      },
      async ({ caller, params: { artifactId } }) => {
        const row = await changeable(db, caller).selectAll().where("id", "=", artifactId).executeTakeFirst();
        const blueprint = row && (await blueprintNow(db, row));
        if (!blueprint) throw notFound("blueprint");
        return blueprint;
      },
    ),
    defineRoute(
      {
        method: "post",
        path: "/:artifactId/approve",
        operation: "approveArtifact",
        summary: "Publish an artifact that was submitted to a store, or a change of its blueprint",
        description:
          "Done by the organization of the store. It approves the blueprint as it is now: others install that, and upgrade to it, whatever becomes of the blueprint, until the next version is approved.",
        params,
        body: approveSchema,
        answer: artifact.entity,
        conflict:
          "it is in no store, or as it is was published already, or its blueprint is at another version",
      },
      ({ caller, params: { artifactId }, body: { version } }) =>
        change(
          caller,
          artifactId,
          async ({ trx, before }) => {
            await requireOwnStore(trx, caller, before);
            const approved = await blueprintNow(trx, before);
            if (version !== undefined && version !== approved?.version)
              throw conflict(`The blueprint is at version ${approved?.version ?? "none"} by now.`);
            const isNews =
              (await needsApproval(trx, before)) && approved?.version !== before.approved?.version;
            if (before.status === "draft" || (before.status === "published" && !isNews))
              throw conflict(`The artifact is ${before.status}.`);
            return { status: "published", approved };
          },
          "approve",
        ),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:artifactId/reject",
        operation: "rejectArtifact",
        summary: "Refuse an artifact that was submitted to a store, or take it down",
        description: "Done by the organization of the store. What was ordered or installed stays.",
        params,
        body: z.strictObject({}),
        answer: artifact.entity,
        conflict: "it is in no store, or rejected already",
      },
      ({ caller, params: { artifactId } }) =>
        change(
          caller,
          artifactId,
          async ({ trx, before }) => {
            await requireOwnStore(trx, caller, before);
            if (before.status === "draft" || before.status === "rejected")
              throw conflict(`The artifact is ${before.status}.`);
            return { status: "rejected" };
          },
          "reject",
        ),
    ),
  ],
});

/** Its organization changes it, and that of its store decides about it. */
const changeable = (db: Queryable, caller: Caller) =>
  db
    .selectFrom("artifacts")
    .where((eb) =>
      eb.or([eb("organizationId", "=", caller.organizationId), eb("offeredIn", "in", ownStores(db, caller))]),
    );

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
