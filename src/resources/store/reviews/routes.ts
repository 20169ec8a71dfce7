import { z } from "zod";
import { id } from "../../../http/fields.ts";
import { ApiError } from "../../../http/problem.ts";
import { once, orElse, readOnly, withAnswer } from "../../kit/field.ts";
import { textInput, textUpTo } from "../../kit/fields.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { lockArtifact, ownStores, requirePublished, visibleReviews } from "../store-scope.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    /** `organizationId` is the reviewer's. */
    storeReviews: TableOf<typeof fields>;
  }
}

const rating = z.int().min(1).max(5).meta({ example: 4 });

const fields = {
  artifactId: withAnswer(
    once(z.string().meta({ description: "A published one.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" })),
    id("art"),
  ),
  storeId: readOnly(id("store")),
  /** An account, which need not be there any more. */
  reviewerId: orElse(readOnly(id("acc")), ({ caller }) => caller.accountId),
  title: textInput,
  content: textUpTo(16_384),
  rating: withAnswer(rating, rating),
};

const review = shape({
  prefix: "rev",
  fields,
  inside: {
    isVerified: z
      .boolean()
      .meta({ description: "The reviewer's organization has a paid order of the artifact." }),
  },
  meta: { id: "StoreReview", description: "What somebody thinks of an artifact." },
});

/** Reviews of artifacts. They are seen with their published artifact. */
export const storeReviews = standardResource({
  path: "/stores/reviews",
  tag: "Store",
  name: "review",
  table: "storeReviews",
  shape: review,
  visible: visibleReviews,
  changeable: visibleReviews,
  filters: {
    query: {
      artifactId: z.string().optional().meta({ description: "Those about this artifact." }),
      storeId: z.string().optional().meta({
        description:
          "Those about artifacts of this store. Without either: those that the caller's organization has written.",
      }),
    },
    find: (db, caller, filters) =>
      filters.artifactId === undefined && filters.storeId === undefined
        ? undefined
        : visibleReviews(db, caller).where((eb) => eb.and(omitUndefined(filters))),
  },
  identified: true,
  taken: {
    when: "the artifact is not published, or the caller's account has reviewed it already",
    message: "You have reviewed the artifact already.",
    of: "new",
  },
  async inside(db, rows) {
    const verified = await db
      .selectFrom("storeReviews")
      .innerJoin("storeOrders", (join) =>
        join
          .onRef("storeOrders.artifactId", "=", "storeReviews.artifactId")
          .onRef("storeOrders.organizationId", "=", "storeReviews.organizationId"),
      )
      .select("storeReviews.id")
      .distinct()
      .where(
        "storeReviews.id",
        "in",
        rows.map((row) => row.id),
      )
      // A refunded order no longer counts.
      .where("storeOrders.status", "=", "paid")
      .execute();
    const ids = new Set(verified.map((row) => row.id));
    return (row) => ({ isVerified: ids.has(row.id) });
  },
  async prepare({ trx, caller, before, values: { artifactId } }) {
    if (!before) return { storeId: requirePublished(await lockArtifact(trx, caller, artifactId)) };
    if (before.reviewerId !== caller.accountId)
      throw new ApiError("permission_denied", "Only its reviewer changes a review.");
    return {};
  },
  async remove({ trx, caller, row, remove }) {
    const store = await ownStores(trx, caller).where("id", "=", row.storeId).executeTakeFirst();
    if (row.reviewerId !== caller.accountId && !store)
      throw new ApiError(
        "permission_denied",
        "Only its reviewer and the organization of its store delete a review.",
      );
    await remove();
  },
  notes: {
    create: { description: "The reviewer is the caller's account.", missing: "the artifact is not there" },
    update: { description: "By its reviewer only. `id` repeats the path's." },
    delete: { description: "By its reviewer, or the organization of its store." },
  },
});
