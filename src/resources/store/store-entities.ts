import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import { id } from "../../http/fields.ts";
import { readOnly, withAnswer } from "../kit/field.ts";
import { nameInput } from "../kit/fields.ts";
import { amount, amountInput, currency, currencyInput } from "../kit/money.ts";
import { type EntityOf, shape, type TableOf } from "../kit/shape.ts";

/** Pricing plans, as the API answers them by themselves and inside artifacts. */
export const interval = z
  .enum(["month", "year"])
  .nullable()
  .meta({ description: "How long what was paid for lasts; null: without end." });

declare module "../../data/tables.ts" {
  interface Tables {
    pricingPlans: TableOf<typeof planFields>;
  }
}

const planFields = {
  artifactId: readOnly(id("art")),
  name: nameInput.meta({ description: "Unique for its artifact.", example: "Standard" }),
  price: withAnswer(amountInput, amount),
  currency: withAnswer(currencyInput, currency),
  interval: interval.default(null),
};

export const pricingPlan = shape({
  prefix: "plan",
  fields: planFields,
  meta: { id: "PricingPlan", description: "What an artifact is to be had for." },
});
export type PricingPlan = EntityOf<typeof pricingPlan>;

/** The plans of each artifact, in order of their making, in one query. */
export async function plansOf(
  db: Queryable,
  artifactIds: readonly string[],
): Promise<ReadonlyMap<string, readonly PricingPlan[]>> {
  const plans = new Map<string, PricingPlan[]>(artifactIds.map((artifactId) => [artifactId, []]));
  if (artifactIds.length === 0) return plans;
  const rows = await db
    .selectFrom("pricingPlans")
    .selectAll()
    .where("artifactId", "in", artifactIds)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  for (const row of rows) plans.get(row.artifactId)?.push(pricingPlan.render(row));
  return plans;
}
