import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import type { PricingPlanRow } from "../../data/store-tables.ts";
import { id, type Shown } from "../../http/fields.ts";
import { amount, currency } from "../kit/amounts.ts";
import { times, timesOf } from "../kit/times.ts";

/** Pricing plans, as the API answers them by themselves and inside artifacts. */
export const interval = z
  .enum(["month", "year"])
  .nullable()
  .meta({ description: "How long what was paid for lasts; null: without end." });

export const pricingPlanSchema = z
  .object({
    id: id("plan"),
    artifactId: id("art"),
    name: z.string(),
    price: amount,
    currency,
    interval,
    ...times,
  })
  .meta({ id: "PricingPlan", description: "What an artifact is to be had for." });
export type PricingPlan = Shown<z.output<typeof pricingPlanSchema>>;

export function renderPricingPlan(row: PricingPlanRow): PricingPlan {
  const { id, artifactId, name, price, currency, interval } = row;
  return { id, artifactId, name, price, currency, interval, ...timesOf(row) };
}

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
  for (const row of rows) plans.get(row.artifactId)?.push(renderPricingPlan(row));
  return plans;
}
