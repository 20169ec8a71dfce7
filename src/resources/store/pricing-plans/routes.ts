import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { pricingPlanSchema } from "../store-entities.ts";
import { createPlan, deletePlan, getPlan, listPlans, updatePlan } from "./queries.ts";
import { pricingPlanInput, pricingPlanPatch } from "./schema.ts";

const plan = standardRoutes({
  name: "pricingPlan",
  words: "pricing plan",
  prefix: "plan",
  entity: pricingPlanSchema,
  within: { artifactId: pathId("art", "artifact") },
});
const taken = "the artifact has a pricing plan of that name already";

/** What artifacts are to be had for; whoever sees an artifact sees its plans. */
export const storePricingPlans: Resource<RowDeps> = {
  path: "/stores/artifacts/:artifactId/pricing-plans",
  tag: "Store",
  routes: (deps) => [
    plan.create(
      {
        body: pricingPlanInput,
        description:
          "Other organizations install an artifact that has plans, and none for nothing, with a paid order of it only.",
        conflict: `${taken}, or twenty plans`,
      },
      ({ caller, within, body }) => createPlan(deps, caller, within.artifactId, body),
    ),
    plan.list(({ caller, within, page }) => listPlans(deps, caller, within.artifactId, page)),
    plan.get(({ caller, within, id }) => getPlan(deps, caller, { ...within, id })),
    plan.update(
      {
        body: pricingPlanPatch,
        description: "Orders stay as they were made.",
        conflict: taken,
      },
      ({ caller, within, id, patch }) => updatePlan(deps, caller, { ...within, id }, patch),
    ),
    plan.remove({ conflict: "there are orders of it" }, ({ caller, within, id }) =>
      deletePlan(deps, caller, { ...within, id }),
    ),
  ],
};
