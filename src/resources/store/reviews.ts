import { z } from "zod";
import { ApiError } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { once, orElse, readOnly, withAnswer } from "../kit/field.ts";
import { textInput, textUpTo } from "../kit/fields.ts";
import { omitUndefined } from "../kit/list-page.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { lockArtifact, ownStores, requirePublished, visibleReviews } from "./store-scope.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    /** `organizationId` is the reviewer's organization. */
    storeReviews: TableOf<typeof fields>;
  }
}

const rating = z.int().min(1).max(5).meta({ example: 4 });

const fields = {
  artifactId: withAnswer(
    once(z.string().meta({ description: "A published artifact.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" })),
    id("art"),
  ),
  storeId: readOnly(id("store")),
  /** Account id of the reviewer. It stays in the review when the account is deleted. */
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
      .meta({ description: "Whether the reviewer's organization has a paid order for the artifact." }),
  },
  meta: { id: "StoreReview", description: "A review of an artifact." },
});

/** Routes of reviews. Everyone who can see a published artifact can see its reviews. */
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
      artifactId: z.string().optional().meta({ description: "Only reviews of this artifact." }),
      storeId: z.string().optional().meta({
        description:
          "Only reviews of artifacts in this store. If neither `artifactId` nor `storeId` is set, lists the reviews of the caller's organization.",
      }),
    },
    find: (db, caller, filters) =>
      filters.artifactId === undefined && filters.storeId === undefined
        ? undefined
        : visibleReviews(db, caller).where((eb) => eb.and(omitUndefined(filters))),
  },
  identified: true,
  taken: {
    when: "the artifact is not published, or the caller's account has already reviewed it",
    message: "You have already reviewed this artifact.",
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
      // Orders that were refunded later do not count.
      .where("storeOrders.status", "=", "paid")
      .execute();
    const ids = new Set(verified.map((row) => row.id));
    return (row) => ({ isVerified: ids.has(row.id) });
  },
  async prepare({ trx, caller, before, values: { artifactId } }) {
    if (!before) return { storeId: requirePublished(await lockArtifact(trx, caller, artifactId)) };
    if (before.reviewerId !== caller.accountId)
      throw new ApiError("permission_denied", "Only the reviewer can change a review.");
    return {};
  },
  async remove({ trx, caller, row, remove }) {
    const store = await ownStores(trx, caller).where("id", "=", row.storeId).executeTakeFirst();
    if (row.reviewerId !== caller.accountId && !store)
      throw new ApiError(
        "permission_denied",
        "Only the reviewer and the organization of the store can delete a review.",
      );
    await remove();
  },
  notes: {
    create: { description: "The reviewer is the caller's account.", missing: "the artifact does not exist" },
    update: { description: "Only the reviewer may do this. `id` must equal the id in the path." },
    delete: { description: "Only the reviewer and the store's organization may do this." },
  },
});
