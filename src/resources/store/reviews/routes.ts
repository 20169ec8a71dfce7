import { listOf } from "../../kit/answer.ts";
import { withoutId } from "../../kit/merge.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { createReview, deleteReview, getReview, listReviews, updateReview } from "./queries.ts";
import { reviewInput, reviewPatch, reviewSchema, reviewsQuery } from "./schema.ts";

const review = standardRoutes({ name: "review", prefix: "rev", entity: reviewSchema });

/** What is thought of artifacts; whoever sees a published artifact sees its reviews. */
export const storeReviews: Resource<RowDeps> = {
  path: "/stores/reviews",
  tag: "Store",
  routes: (deps) => [
    review.create(
      {
        body: reviewInput,
        description: "The reviewer is the caller's account.",
        missing: "the artifact is not there",
        conflict: "the artifact is not published, or the caller's account has reviewed it already",
      },
      ({ caller, body }) => createReview(deps, caller, body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listReviews",
        summary: "List the reviews",
        query: reviewsQuery,
        answer: listOf(reviewSchema),
      },
      ({ caller, query }) => listReviews(deps, caller, query),
    ),
    review.get(({ caller, id }) => getReview(deps, caller, id)),
    review.update(
      { body: reviewPatch, description: "By its reviewer only. `id` repeats the path's." },
      ({ caller, id, patch }) => updateReview(deps, caller, id, withoutId(id, patch)),
    ),
    review.remove({ description: "By its reviewer, or the organization of its store." }, (input) =>
      deleteReview(deps, input.caller, input.id),
    ),
  ],
};
