import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, conflict, notFound } from "../../../http/errors.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { BLUEPRINTS } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { AWAITS_APPROVAL, blueprintNow, needsApproval } from "../../store/approved-blueprints.ts";
import { pricingPlan } from "../../store/schema.ts";
import { ownStores, visibleArtifacts } from "../../store/store-scope.ts";
import { applyApproved } from "../intake-approval.ts";
import { computeChangedStatus, computeNewStatus } from "./artifact-status.ts";
import {
  type ArtifactRow,
  approveSchema,
  artifact,
  artifactFilters,
  offeredBlueprintSchema,
} from "./schema.ts";

export const artifacts = standardResource({
  path: "/stores/artifacts",
  tag: "Store",
  name: "artifact",
  table: "artifacts",
  shape: artifact,
  audit: "artifact",
  references: { blueprintId: BLUEPRINTS },
  inUse: {
    when: "the artifact has orders",
    message: "The artifact has orders, so it cannot be deleted.",
  },
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
    const plans = await db
      .selectFrom("pricingPlans")
      .selectAll()
      .where("artifactId", "in", ids)
      .orderBy("createdAt")
      .orderBy("id")
      .execute();
    const plansOf = Map.groupBy(plans, ({ artifactId }) => artifactId);
    const awaiting = await db
      .selectFrom("artifacts")
      .select("id")
      .where("id", "in", ids)
      .where(AWAITS_APPROVAL)
      .execute();
    return ({ id, offeredIn, approved }) => ({
      storeId: offeredIn,
      pricingPlans: (plansOf.get(id) ?? []).map((row) => pricingPlan.render(row)),
      approvedVersion: approved?.version ?? null,
      awaitsApproval: awaiting.some((one) => one.id === id),
    });
  },
  readAside: async (_, { offeredIn }) => ({ storeId: offeredIn }),
  async prepare({ trx, caller, before, values }) {
    if (before) requireOwn(caller, before);
    const status = await (before
      ? computeChangedStatus(trx, caller, before, values)
      : computeNewStatus(trx, caller, values));
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
        "Artifacts of kind `blueprint` can be installed. In a store of your organization, the artifact is published immediately. You can also submit it to another organization's public store that allows submissions. There it is published immediately, or stays `pending` until approved if the store requires approval.",
      missing: "the blueprint, store or category does not exist",
      conflict: "the store belongs to another organization and does not accept submissions",
    },
    get: {
      description:
        "Returns artifacts of your organization, artifacts in its stores, and published artifacts of public stores.",
    },
    update: {
      description:
        "In another organization's store, a change to kind, title, description or `blueprintId` makes the artifact `pending` again if it was rejected or the store requires approval. Changes to the content of its blueprint do not unpublish it. If the store requires approval, other organizations continue to install the approved version.",
      missing: "the artifact, blueprint, store or category does not exist",
      conflict:
        "the artifact has orders or reviews and would leave its store; or the new store belongs to another organization and does not accept submissions",
    },
    delete: {
      description:
        "Also deletes the artifact's pricing plans and reviews. Apps that were installed from the artifact are kept.",
    },
  },
  more: ({ db, keyring, ...deps }, { change }) => [
    defineRoute({
      at: "GET /stores/artifacts/:artifactId/blueprint",
      operation: "getArtifactBlueprint",
      summary: "Get the current blueprint of an artifact",
      description:
        "Shows the version that the store would approve. Only the artifact's organization and the store's organization can see it.",
      answer: offeredBlueprintSchema,
      async handle({ caller, params: { artifactId } }) {
        const row = await changeable(db, caller).selectAll().where("id", "=", artifactId).executeTakeFirst();
        const blueprint = row && (await blueprintNow(db, row));
        if (!blueprint) throw notFound("blueprint");
        return blueprint;
      },
    }),
    defineRoute({
      at: "POST /stores/artifacts/:artifactId/approve",
      operation: "approveArtifact",
      summary: "Approve an artifact, or a new version of its blueprint",
      description:
        "Publishes the artifact and approves the current version of its blueprint. Other organizations install this version until you approve another one, even if the blueprint changes. The settings of the blueprint's intake take effect. Only the store's organization may do this.",
      body: approveSchema,
      answer: artifact.entity,
      conflict:
        "the artifact is not in a store, its current version is already published, or `version` is not the blueprint's current version",
      handle: ({ caller, params: { artifactId }, body: { version } }) =>
        change(
          caller,
          artifactId,
          async ({ trx, before, nowMs }) => {
            await requireOwnStore(trx, caller, before);
            const approved = await blueprintNow(trx, before);
            if (version !== undefined && version !== approved?.version)
              throw conflict(
                approved
                  ? `The blueprint is now at version ${approved.version}. Review it and try again.`
                  : "The blueprint was deleted.",
              );
            const hasNewVersion =
              (await needsApproval(trx, before)) && approved?.version !== before.approved?.version;
            if (before.status === "draft" || (before.status === "published" && !hasNewVersion))
              throw conflict(`The artifact is ${before.status} and has no version to approve.`);
            if (before.blueprintId !== null)
              await applyApproved(
                trx,
                deps,
                { blueprintId: before.blueprintId, artifactId },
                { keyring, nowMs },
              );
            return { status: "published", approved };
          },
          "approve",
        ),
    }),
    defineRoute({
      at: "POST /stores/artifacts/:artifactId/reject",
      operation: "rejectArtifact",
      summary: "Reject a submitted artifact, or unpublish a published one",
      description: "Existing orders and installed apps are kept. Only the store's organization may do this.",
      body: z.strictObject({}),
      answer: artifact.entity,
      conflict: "the artifact is not in a store, or is already rejected",
      handle: ({ caller, params: { artifactId } }) =>
        change(
          caller,
          artifactId,
          async ({ trx, before }) => {
            await requireOwnStore(trx, caller, before);
            if (before.status === "draft" || before.status === "rejected")
              throw conflict(`The artifact is ${before.status}, so it cannot be rejected.`);
            return { status: "rejected" };
          },
          "reject",
        ),
    }),
  ],
});

/** Selects the artifacts that the caller's organization owns, and those in its stores, which it may approve. */
const changeable = (db: Queryable, caller: Caller) =>
  db
    .selectFrom("artifacts")
    .where((eb) =>
      eb.or([eb("organizationId", "=", caller.organizationId), eb("offeredIn", "in", ownStores(db, caller))]),
    );

/** Checks that the caller's organization owns the artifact. @throws ApiError 404, even for the store that approves the artifact */
function requireOwn({ organizationId }: Caller, row: ArtifactRow): void {
  if (row.organizationId !== organizationId) throw notFound("artifact");
}

/**
 * Checks that the caller's organization owns the artifact's store.
 * @throws ApiError 409 if the artifact is in no store; 403 for the store of another organization
 */
async function requireOwnStore(db: Queryable, caller: Caller, { offeredIn }: ArtifactRow): Promise<void> {
  if (offeredIn === null) throw conflict("The artifact is not in a store.");
  const store = await ownStores(db, caller).where("id", "=", offeredIn).executeTakeFirst();
  if (!store)
    throw new ApiError("permission_denied", "Only the store's organization may approve or reject artifacts.");
}
