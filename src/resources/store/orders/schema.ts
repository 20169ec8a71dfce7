import { z } from "zod";
import type { StoreOrderRow } from "../../../data/store-tables.ts";
import { id, type Shown, timestamp } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { amount, amountInput, currency } from "../../kit/amounts.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

const paymentMethod = z
  .string()
  .max(255)
  .nullable()
  .default(null)
  .meta({ description: "Stored as given.", example: "invoice" });
const tax = amountInput.default("0").meta({ description: "A decimal number.", example: "3.78" });
const status = z.enum(["pending", "paid", "refunded", "expired", "canceled"]);

export const orderInput = z.strictObject({
  artifactId: z.string().meta({ description: "A published one.", example: "art_01jc9x2k4v8m3n5p7q9r1s0" }),
  pricingPlanId: z
    .string()
    .meta({ description: "A plan of that artifact.", example: "plan_01jc9x2k4v8m3n5p7q9r1s0" }),
  paymentMethod,
  tax,
});
export type OrderInput = z.output<typeof orderInput>;

/** What may be changed of an order that waits for its payment. */
export const orderContent = z.strictObject({ paymentMethod, tax });
export const orderPatch = patchOf(orderContent);

/** What is told of a payment. */
export const paymentInput = z.strictObject({
  transactionId: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .default(null)
    .meta({ description: "What the payment is called where it was made. Stored as given.", example: "tx-1" }),
  paymentMethod: paymentMethod.unwrap().optional().meta({ description: "Default: that of the order." }),
  total: amount.optional().meta({ description: "What was paid; another total than the order's is a 409." }),
});
export type PaymentInput = z.output<typeof paymentInput>;

export const ordersQuery = z.object({
  storeId: z.string().optional().meta({ description: "Those of this store." }),
  artifactId: z.string().optional().meta({ description: "Those of this artifact." }),
  status: status.optional(),
  ...pageQuery,
});
export type OrdersQuery = z.output<typeof ordersQuery>;

const text = z.string().nullable();

/** The order as the API answers it. */
export const orderSchema = z
  .object({
    id: id("ord"),
    orderNumber: z.string(),
    artifactId: id("art"),
    buyerId: id("acc"),
    storeId: id("store"),
    pricingPlanId: id("plan"),
    transactionId: text,
    licenseKey: text.meta({
      description: "Made when the order is paid; seen by the buyer's organization only, null to others.",
    }),
    paymentMethod: text,
    currency,
    subtotal: amount,
    tax: amount,
    total: amount,
    commission: amount.meta({
      description:
        "What the store keeps of the subtotal, by its rate when the order was made; rounded half up to four decimals.",
    }),
    status,
    paidAt: timestamp.nullable(),
    expiresAt: timestamp
      .nullable()
      .meta({ description: "When what was paid for ends; null: not paid yet, or without end." }),
    ...times,
  })
  .meta({ id: "Order", description: "An artifact that somebody buys." });
export type Order = Shown<z.output<typeof orderSchema>>;

/** The order as that organization sees it. */
export function renderOrder(row: StoreOrderRow, organizationId: string): Order {
  const { id, orderNumber, artifactId, buyerId, storeId, pricingPlanId, transactionId } = row;
  const { paymentMethod, currency, subtotal, tax, total, commission, status } = row;
  return {
    ...{ id, orderNumber, artifactId, buyerId, storeId, pricingPlanId, transactionId },
    licenseKey: row.organizationId === organizationId ? row.licenseKey : null,
    ...{ paymentMethod, currency, subtotal, tax, total, commission, status },
    paidAt: row.paidAt && formatTimestamp(row.paidAt.getTime()),
    expiresAt: row.expiresAt && formatTimestamp(row.expiresAt.getTime()),
    ...timesOf(row),
  };
}
