import { z } from "zod";
import { amountInput, currencyInput } from "../../kit/amounts.ts";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { interval } from "../store-entities.ts";

/** What is written of a plan. */
export const pricingPlanInput = z.strictObject({
  name: nameInput.meta({ description: "Unique for its artifact.", example: "Standard" }),
  price: amountInput,
  currency: currencyInput,
  interval: interval.default(null),
});
export type PricingPlanInput = z.output<typeof pricingPlanInput>;

export const pricingPlanPatch = patchOf(pricingPlanInput);
