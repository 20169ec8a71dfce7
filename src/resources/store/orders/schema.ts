import { z } from "zod";
import { id, timestamp } from "../../../http/fields.ts";
import { hidden, once, orElse, readOnly, time, withAnswer } from "../../kit/field.ts";
import { textInput } from "../../kit/fields.ts";
import { amount, amountInput, currency } from "../../kit/money.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { interval } from "../store-entities.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    /** `organizationId` is the buyer's. */
    storeOrders: TableOf<typeof fields>;
  }
}

export const ORDER_STATUSES = ["pending", "paid", "refunded", "expired", "canceled"] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];
const status = z.enum(ORDER_STATUSES);

const paymentMethod = textInput.meta({ description: "Stored as given.", example: "invoice" });
const text = z.string().nullable();

const fields = {
  orderNumber: orElse(readOnly(z.string()), ({ id }) => orderNumberOf(id)),
  artifactId: withAnswer(
    once(z.string().meta({ description: "A published one.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" })),
    id("art"),
  ),
  /** An account, which need not be there any more. */
  buyerId: orElse(readOnly(id("acc")), ({ caller }) => caller.accountId),
  storeId: readOnly(id("store")),
  storeOrganizationId: hidden(z.string()),
  pricingPlanId: withAnswer(
    once(
      z.string().meta({ description: "A plan of that artifact.", example: "plan_01jc9x2k4v8m3n5p7q9r1s0" }),
    ),
    id("plan"),
  ),
  transactionId: readOnly(text),
  licenseKey: hidden(text),
  paymentMethod: withAnswer(paymentMethod, text),
  currency: readOnly(currency),
  /** That of the plan when it was ordered. */
  interval: hidden(interval),
  subtotal: readOnly(amount),
  tax: withAnswer(
    amountInput.default("0").meta({ description: "A decimal number.", example: "3.78" }),
    amount,
  ),
  total: readOnly(amount),
  commission: readOnly(
    amount.meta({
      description:
        "What the store keeps of the subtotal, by its rate when the order was made; rounded half up to four decimals.",
    }),
  ),
  status: orElse(readOnly(status), () => "pending"),
  paidAt: readOnly(time(timestamp.nullable())),
  expiresAt: readOnly(
    time(
      timestamp
        .nullable()
        .meta({ description: "When what was paid for ends; null: not paid yet, or without end." }),
    ),
  ),
};

export type OrderRow = RowOf<typeof fields>;

export const order = shape({
  prefix: "ord",
  fields,
  inside: {
    licenseKey: text.meta({
      description: "Made when the order is paid; seen by the buyer's organization only, null to others.",
    }),
  },
  meta: { id: "Order", description: "An artifact that somebody buys." },
});

/** A payment, as the store reports it. */
export const paymentInput = z.strictObject({
  transactionId: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .default(null)
    .meta({ description: "What the payment is called where it was made. Stored as given.", example: "tx-1" }),
  paymentMethod: paymentMethod.unwrap().optional().meta({ description: "Default: that of the order." }),
  total: amount
    .optional()
    .meta({ description: "What was paid; another total than the order's is a 409.", example: "23.68" }),
});
export type PaymentInput = z.output<typeof paymentInput>;

export const orderFilters = {
  storeId: z.string().optional().meta({ description: "Those of this store." }),
  artifactId: z.string().optional().meta({ description: "Those of this artifact." }),
  status: status.optional(),
};

/** Unique as the id is, and tells no more: `01JC9X2K4V-8M3N5P7Q9R1S0`. */
function orderNumberOf(id: string): string {
  const text = id.slice(id.indexOf("_") + 1).toUpperCase();
  return `${text.slice(0, 10)}-${text.slice(10)}`;
}
