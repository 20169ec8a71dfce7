import { z } from "zod";
import { ApiError, conflict } from "../../../http/errors.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { visibleOrders } from "../store-scope.ts";
import { addDecimals } from "./decimal.ts";
import { paymentOf, requireStep, STEPS, termsOf } from "./life.ts";
import { order, orderFilters, paymentInput } from "./schema.ts";

const SELLER = "Only the store's organization may do this.";

const ENDINGS = [
  { step: "refund", summary: "Mark an order as refunded", by: SELLER },
  { step: "expire", summary: "Mark an order as expired", by: SELLER },
  {
    step: "cancel",
    summary: "Cancel an order",
    by: "Only the buyer's or the store's organization may do this.",
  },
] as const;

/** Routes of orders. Both the buyer's organization and the store's organization can see an order. */
export const storeOrders = standardResource({
  path: "/stores/orders",
  tag: "Store",
  name: "order",
  table: "storeOrders",
  shape: order,
  audit: "order",
  visible: visibleOrders,
  changeable: visibleOrders,
  filters: {
    query: orderFilters,
    find: (db, caller, filters) => visibleOrders(db, caller).where((eb) => eb.and(omitUndefined(filters))),
  },
  inside:
    async (_, __, { organizationId }) =>
    (row) => ({ licenseKey: row.organizationId === organizationId ? row.licenseKey : null }),
  async prepare({ trx, caller, before, values }) {
    if (!before) return termsOf(trx, caller, values);
    requireStep(caller, before, "pay");
    return { total: addDecimals(before.subtotal, values.tax) };
  },
  async remove({ caller, row, remove }) {
    if (row.organizationId !== caller.organizationId)
      throw new ApiError("permission_denied", "Only the buyer's organization can delete an order.");
    if (row.paidAt !== null) throw conflict("A paid order cannot be deleted.");
    await remove();
  },
  notes: {
    create: {
      description:
        "The order is pending until the store's organization marks it as paid. The subtotal is the current price of the plan. Later changes to the plan or the store do not affect the order.",
      missing: "the artifact or its plan does not exist",
      conflict: "the artifact is not published",
    },
    list: { description: "Lists the orders of the caller's organization and the orders in its stores." },
    update: { description: SELLER, conflict: "the order is not pending" },
    delete: { description: "Only the buyer's organization may do this.", conflict: "the order was paid" },
  },
  more: (_, { change }) => [
    defineRoute({
      at: "POST /stores/orders/:orderId/pay",
      operation: "payOrder",
      summary: "Mark an order as paid",
      description: `${SELLER} The order gets a license key, and an expiry if its plan has an interval.`,
      body: paymentInput,
      answer: order.entity,
      conflict: "the order is not pending, or its total differs from the paid total",
      handle: ({ caller, params: { orderId }, body }) =>
        change(
          caller,
          orderId,
          ({ before, nowMs }) => {
            requireStep(caller, before, "pay");
            return { ...paymentOf(before, body, nowMs), status: STEPS.pay.to };
          },
          "pay",
        ),
    }),
    ...ENDINGS.map(({ step, summary, by }) =>
      defineRoute({
        at: `POST /stores/orders/:orderId/${step}`,
        operation: `${step}Order`,
        summary,
        description: by,
        body: z.strictObject({}),
        answer: order.entity,
        conflict: `the order is not ${STEPS[step].from.join(" or ")}`,
        handle: ({ caller, params: { orderId } }) =>
          change(
            caller,
            orderId,
            ({ before }) => {
              requireStep(caller, before, step);
              return { status: STEPS[step].to };
            },
            step,
          ),
      }),
    ),
  ],
});
