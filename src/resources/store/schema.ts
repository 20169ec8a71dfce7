import { z } from "zod";
import { id } from "../../http/fields.ts";
import { readOnly, withAnswer } from "../kit/field.ts";
import { nameInput } from "../kit/fields.ts";
import { amount, amountInput, currency, currencyInput } from "../kit/money.ts";
import { shape, type TableOf } from "../kit/shape.ts";

export const interval = z
  .enum(["month", "year"])
  .nullable()
  .meta({ description: "The duration of a license after payment. `null` for a license without end." });

declare module "../../data/tables.ts" {
  interface Tables {
    pricingPlans: TableOf<typeof planFields>;
  }
}

const planFields = {
  artifactId: readOnly(id("art")),
  name: nameInput.meta({ description: "Unique within the artifact.", example: "Standard" }),
  price: withAnswer(amountInput, amount),
  currency: withAnswer(currencyInput, currency),
  interval: interval.default(null),
};

export const pricingPlan = shape({
  prefix: "plan",
  fields: planFields,
  meta: { id: "PricingPlan", description: "A price of an artifact." },
});
