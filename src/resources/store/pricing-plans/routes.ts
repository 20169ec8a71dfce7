import { conflict } from "../../../http/problem.ts";
import { ARTIFACTS } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { pricingPlan } from "../store-entities.ts";
import { visibleArtifacts } from "../store-scope.ts";

/** Artifacts are answered with all of them. */
const MAX_PLANS = 20;
const taken = "the artifact has a pricing plan of that name already";

/** The prices of artifacts. They are seen with their artifact. */
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
  taken: { when: taken, message: "The artifact has a pricing plan of that name already." },
  inUse: { when: "there are orders of it", message: "There are orders of the pricing plan." },
  async prepare({ trx, before, values: { artifactId } }) {
    if (before) return {};
    const { count } = await trx
      .selectFrom("pricingPlans")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("artifactId", "=", artifactId)
      .executeTakeFirstOrThrow();
    if (count >= MAX_PLANS) throw conflict(`An artifact has ${MAX_PLANS} pricing plans at most.`);
    return {};
  },
  notes: {
    create: {
      description:
        "Other organizations install an artifact that has plans, and none for nothing, with a paid order of it only.",
      conflict: `${taken}, or twenty plans`,
    },
    update: { description: "Orders stay as they were made." },
  },
});
