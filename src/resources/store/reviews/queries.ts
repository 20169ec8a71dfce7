import type { ExpressionBuilder } from "kysely";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { StoreReviewRow } from "../../../data/store-tables.ts";
import type { Tables } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed } from "../../../http/page.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { createId, isId } from "../../../lib/ids.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { visibleArtifacts, visibleReviews } from "../store-scope.ts";
import {
  type FoundReview,
  type Review,
  type ReviewInput,
  type ReviewsQuery,
  renderReview,
  reviewContent,
} from "./schema.ts";

/** @throws ApiError 404 where the caller does not see it */
export const getReview = async ({ db }: RowDeps, caller: Caller, id: string): Promise<Review> =>
  renderReview(await find(db, caller, id));

export async function listReviews(
  { db }: RowDeps,
  caller: Caller,
  { artifactId, storeId, ...page }: ReviewsQuery,
): Promise<Listed<Review>> {
  let all =
    artifactId === undefined && storeId === undefined
      ? db.selectFrom("storeReviews").where("organizationId", "=", caller.organizationId)
      : visibleReviews(db, caller);
  if (artifactId !== undefined) all = all.where("artifactId", "=", artifactId);
  if (storeId !== undefined) all = all.where("storeId", "=", storeId);
  return mapPage(await listPage(all.selectAll().select(isVerified), page), renderReview);
}

/** @throws ApiError 404 where the caller sees no such artifact, 409 where it is not published or was reviewed by the caller */
export async function createReview(
  { db, clock }: RowDeps,
  caller: Caller,
  { artifactId, ...content }: ReviewInput,
): Promise<Review> {
  const created = db.transaction().execute(async (trx) => {
    // It stays in its store until the review is there.
    const artifact = await visibleArtifacts(trx, caller)
      .selectAll()
      .where("id", "=", isId("art", artifactId) ? artifactId : "")
      .forShare()
      .executeTakeFirst();
    if (!artifact) throw notFound("artifact");
    if (artifact.status !== "published" || artifact.offeredIn === null)
      throw conflict("The artifact is not published.");
    const nowMs = clock();
    const now = new Date(nowMs);
    const id = createId("rev", nowMs);
    const { organizationId, accountId: reviewerId } = caller;
    const place = { id, organizationId, artifactId, storeId: artifact.offeredIn, reviewerId };
    await trx
      .insertInto("storeReviews")
      .values({ ...place, ...content, createdAt: now, updatedAt: now })
      .execute();
    return find(trx, caller, id);
  });
  return renderReview(await refuseTaken("You have reviewed the artifact already.", created));
}

/** @throws ApiError 400, 404, 403 for anybody but the reviewer */
export async function updateReview(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Review> {
  return db.transaction().execute(async (trx) => {
    const before = await lock(trx, caller, id);
    if (before.reviewerId !== caller.accountId)
      throw new ApiError("permission_denied", "Only its reviewer changes a review.");
    const { title, content, rating } = before;
    const after = applyPatch(reviewContent, { title, content, rating }, patch);
    await trx
      .updateTable("storeReviews")
      .set({ ...after, updatedAt: new Date(clock()) })
      .where("id", "=", id)
      .execute();
    return renderReview(await find(trx, caller, id));
  });
}

/** @throws ApiError 404, 403 for anybody but the reviewer and the store's organization */
export async function deleteReview({ db }: RowDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lock(trx, caller, id);
    if (row.reviewerId !== caller.accountId && !(await ownsStore(trx, caller, row.storeId)))
      throw new ApiError(
        "permission_denied",
        "Only its reviewer and the organization of its store delete a review.",
      );
    await trx.deleteFrom("storeReviews").where("id", "=", id).execute();
  });
}

async function find(db: Queryable, caller: Caller, id: string): Promise<FoundReview> {
  const row = await visibleReviews(db, caller)
    .selectAll()
    .select(isVerified)
    .where("id", "=", id)
    .executeTakeFirst();
  if (!row) throw notFound("review");
  return row;
}

async function lock(trx: Trx, caller: Caller, id: string): Promise<StoreReviewRow> {
  const row = await visibleReviews(trx, caller)
    .selectAll()
    .where("id", "=", id)
    .forUpdate()
    .executeTakeFirst();
  if (!row) throw notFound("review");
  return row;
}

/** What was paid back counts no longer. */
const isVerified = (eb: ExpressionBuilder<Tables, "storeReviews">) =>
  eb
    .exists(
      eb
        .selectFrom("storeOrders")
        .select("storeOrders.id")
        .whereRef("storeOrders.artifactId", "=", "storeReviews.artifactId")
        .whereRef("storeOrders.organizationId", "=", "storeReviews.organizationId")
        .where("storeOrders.status", "=", "paid"),
    )
    .$castTo<boolean>()
    .as("isVerified");

async function ownsStore(trx: Trx, { organizationId }: Caller, storeId: string): Promise<boolean> {
  const store = await trx
    .selectFrom("stores")
    .select("id")
    .where("id", "=", storeId)
    .where("organizationId", "=", organizationId)
    .executeTakeFirst();
  return store !== undefined;
}
