import { z } from "zod";
import { id, timestamp } from "../../../http/fields.ts";
import { hidden, once, orElse, readOnly, time, withAnswer } from "../../kit/field.ts";
import { textInput } from "../../kit/fields.ts";
import { amount, amountInput, currency } from "../../kit/money.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { interval } from "../schema.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    /** `organizationId` is the buyer's organization. */
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
    once(z.string().meta({ description: "A published artifact.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" })),
    id("art"),
  ),
  /** Account id of the buyer. It stays in the order when the account is deleted. */
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
  /** Billing interval of the plan when the order was created. */
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
        "The store's share of the subtotal, at its commission rate when the order was created. Rounded half up to four decimals.",
    }),
  ),
  status: orElse(readOnly(status), () => "pending"),
  paidAt: readOnly(time(timestamp.nullable())),
  expiresAt: readOnly(
    time(
      timestamp.nullable().meta({
        description: "The end of the license. `null` if the order is not paid yet or the license has no end.",
      }),
    ),
  ),
};

export type OrderRow = RowOf<typeof fields>;

export const order = shape({
  prefix: "ord",
  fields,
  inside: {
    licenseKey: text.meta({
      description:
        "Created when the order is paid. Only the buyer's organization can see it; others get `null`.",
    }),
  },
  meta: { id: "Order", description: "A purchase of an artifact." },
});

export const paymentInput = z.strictObject({
  transactionId: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .default(null)
    .meta({ description: "The payment's id at the payment provider. Stored as given.", example: "tx-1" }),
  paymentMethod: paymentMethod
    .unwrap()
    .optional()
    .meta({ description: "Default: the payment method of the order." }),
  total: amount.optional().meta({
    description: "The paid total. The request fails with 409 if it differs from the order's total.",
    example: "23.68",
  }),
});
export type PaymentInput = z.output<typeof paymentInput>;

export const orderFilters = {
  storeId: z.string().optional().meta({ description: "Only orders in this store." }),
  artifactId: z.string().optional().meta({ description: "Only orders of this artifact." }),
  status: status.optional(),
};

/** Derives an order number such as `01JC9X2K4V-8M3N5P7Q9R1S0` from the id. The number does not reveal how many orders exist. */
function orderNumberOf(id: string): string {
  const text = id.slice(id.indexOf("_") + 1).toUpperCase();
  return `${text.slice(0, 10)}-${text.slice(10)}`;
}
