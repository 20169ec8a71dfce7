import { conflict } from "../../http/errors.ts";
import { countRows } from "../kit/list-page.ts";
import { ARTIFACTS } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { pricingPlan } from "./schema.ts";
import { visibleArtifacts } from "./store-scope.ts";

/** Maximum number of plans per artifact. The limit exists because the response for an artifact contains all its plans. */
const MAX_PLANS = 20;
const taken = "the artifact already has a pricing plan with this name";

/** Routes of pricing plans. Everyone who can see an artifact can see its plans. */
export const storePricingPlans = standardResource({
  path: "/stores/artifacts/:artifactId/pricing-plans",
  tag: "Store",
  name: "pricingPlan",
  table: "pricingPlans",
  shape: pricingPlan,
  audit: "pricingPlan",
  within: { param: "artifactId", parent: ARTIFACTS, visible: visibleArtifacts },
  visible: (db, caller) =>
    db
      .selectFrom("pricingPlans")
      .where("artifactId", "in", visibleArtifacts(db, caller).select("artifacts.id")),
  taken: { when: taken, message: "The artifact already has a pricing plan with this name." },
  inUse: {
    when: "the pricing plan has orders",
    message: "The pricing plan has orders, so it cannot be deleted.",
  },
  async prepare({ trx, before, values: { artifactId } }) {
    if (before) return {};
    const plans = trx.selectFrom("pricingPlans").where("artifactId", "=", artifactId);
    if ((await countRows(plans)) >= MAX_PLANS)
      throw conflict(`An artifact can have at most ${MAX_PLANS} pricing plans.`);
    return {};
  },
  notes: {
    create: {
      description:
        "If an artifact has plans and none of them is free, other organizations need a paid order to install it.",
      conflict: `${taken}, or it already has ${MAX_PLANS} pricing plans`,
    },
    update: { description: "Existing orders do not change." },
  },
});
