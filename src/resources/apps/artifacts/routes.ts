import { z } from "zod";
import { listOf } from "../../kit/answer.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import {
  createArtifact,
  decide,
  deleteArtifact,
  getArtifact,
  listArtifacts,
  updateArtifact,
} from "./queries.ts";
import { artifactInputSchema, artifactPatchSchema, artifactSchema, artifactsQuery } from "./schema.ts";

const artifact = standardRoutes({ name: "artifact", prefix: "art", entity: artifactSchema });
const params = { artifactId: pathId("art", "artifact") } as const;
const nothing = z.strictObject({});

/** Artifacts: what stores offer. */
export const artifacts: Resource<RowDeps> = {
  path: "/stores/artifacts",
  tag: "Store",
  routes: (deps) => [
    artifact.create(
      {
        body: artifactInputSchema,
        description:
          "One of kind `blueprint` can be installed. In a store of the caller's organization it is published at once. A public store that allows submissions takes it of other organizations too: `pending`, and published once it is approved, if the store requires that, else at once.",
        missing: "the blueprint, the store or its category is not there",
        conflict: "the store is another organization's and takes no submissions",
      },
      ({ caller, body }) => createArtifact(deps, caller, body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listArtifacts",
        summary: "List the artifacts",
        query: artifactsQuery,
        answer: listOf(artifactSchema),
      },
      ({ caller, query }) => listArtifacts(deps, caller, query),
    ),
    artifact.get(({ caller, id }) => getArtifact(deps, caller, id), {
      description:
        "One of the caller's organization, one in its stores, or a published one of a public store.",
    }),
    artifact.update(
      {
        body: artifactPatchSchema,
        description:
          "What is in a store of another organization becomes `pending` again when kind, title, description or blueprint change, if it was rejected or the store requires approval.",
        missing: "it, or the blueprint, the store or its category is not there",
        conflict:
          "it has orders or reviews and would leave its store, or the new store is another organization's and takes no submissions",
      },
      ({ caller, id, patch }) => updateArtifact(deps, caller, id, patch),
    ),
    artifact.remove(
      {
        description: "With its plans and reviews. What was installed from it stays.",
        conflict: "there are orders of it",
      },
      ({ caller, id }) => deleteArtifact(deps, caller, id),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:artifactId/approve",
        operation: "approveArtifact",
        summary: "Publish an artifact that was submitted to a store",
        description: "Done by the organization of the store.",
        params,
        body: nothing,
        answer: artifactSchema,
        conflict: "it is in no store, or published already",
      },
      ({ caller, params: { artifactId } }) =>
        decide(deps, caller, artifactId, {
          ...{ action: "approve", status: "published", from: ["pending", "rejected"] },
        }),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:artifactId/reject",
        operation: "rejectArtifact",
        summary: "Refuse an artifact that was submitted to a store, or take it down",
        description: "Done by the organization of the store. What was ordered or installed stays.",
        params,
        body: nothing,
        answer: artifactSchema,
        conflict: "it is in no store, or rejected already",
      },
      ({ caller, params: { artifactId } }) =>
        decide(deps, caller, artifactId, {
          ...{ action: "reject", status: "rejected", from: ["pending", "published"] },
        }),
    ),
  ],
};
