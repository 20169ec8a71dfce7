import { z } from "zod";
import type { StoreReviewRow } from "../../../data/store-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { identifiedPatchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

/** What may be changed of a review. */
export const reviewContent = z.strictObject({
  title: z.string().max(255).nullable().default(null),
  content: z.string().max(16_384).nullable().default(null),
  rating: z.int().min(1).max(5).meta({ example: 4 }),
});

/** The same when one is written. */
export const reviewInput = reviewContent.extend({
  artifactId: z.string().meta({ description: "A published one.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" }),
});
export type ReviewInput = z.output<typeof reviewInput>;

export const reviewPatch = identifiedPatchOf(reviewContent);

export const reviewsQuery = z.object({
  artifactId: z.string().optional().meta({ description: "Those about this artifact." }),
  storeId: z.string().optional().meta({
    description:
      "Those about artifacts of this store. Without either: those that the caller's organization has written.",
  }),
  ...pageQuery,
});
export type ReviewsQuery = z.output<typeof reviewsQuery>;

/** The review as the API answers it. */
export const reviewSchema = z
  .object({
    id: id("rev"),
    artifactId: id("art"),
    storeId: id("store"),
    reviewerId: id("acc"),
    title: z.string().nullable(),
    content: z.string().nullable(),
    rating: z.int().min(1).max(5),
    isVerified: z
      .boolean()
      .meta({ description: "The reviewer's organization has a paid order of the artifact." }),
    ...times,
  })
  .meta({ id: "StoreReview", description: "What somebody thinks of an artifact." });
export type Review = Shown<z.output<typeof reviewSchema>>;

/** A review with what is looked up for it. */
export type FoundReview = StoreReviewRow & { readonly isVerified: boolean };

export function renderReview(row: FoundReview): Review {
  const { id, artifactId, storeId, reviewerId, title, content, rating, isVerified } = row;
  return { id, artifactId, storeId, reviewerId, title, content, rating, isVerified, ...timesOf(row) };
}
