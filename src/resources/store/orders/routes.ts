import { z } from "zod";
import { ApiError, conflict } from "../../../http/problem.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import { defineRoute } from "../../kit/route.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { visibleOrders } from "../store-scope.ts";
import { addDecimals } from "./decimal.ts";
import { paymentOf, requireStep, STEPS, termsOf } from "./life.ts";
import { order, orderFilters, paymentInput } from "./schema.ts";

const params = { orderId: pathId("ord", "order") } as const;
const SELLER = "Done by the store's organization.";

const ENDINGS = [
  { step: "refund", summary: "Tell that an order was paid back", by: SELLER },
  { step: "expire", summary: "End an order whose time is over", by: SELLER },
  { step: "cancel", summary: "Cancel an order", by: "Done by the buyer's or the store's organization." },
] as const;

/** Orders of artifacts: seen by the buyer's and the store's organization. */
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
      throw new ApiError("permission_denied", "Only the buyer's organization deletes an order.");
    if (row.paidAt !== null) throw conflict("An order that was paid is kept.");
    await remove();
  },
  notes: {
    create: {
      description:
        "It is pending until the store's organization has been paid. The subtotal is the plan's price; plan and store may change later, the order does not.",
      missing: "the artifact or its plan is not there",
      conflict: "the artifact is not published",
    },
    list: { description: "What the caller's organization has bought, and what was bought in its stores." },
    update: { description: SELLER, conflict: "it is not pending" },
    delete: { description: "Done by the buyer's organization.", conflict: "it was paid" },
  },
  more: (_, { change }) => [
    defineRoute(
      {
        method: "post",
        path: "/:orderId/pay",
        operation: "payOrder",
        summary: "Tell that an order was paid",
        description: `${SELLER} The order gets a license key, and by the interval of its plan an end.`,
        params,
        body: paymentInput,
        answer: order.entity,
        conflict: "it is not pending, or its total is another",
      },
      ({ caller, params: { orderId }, body }) =>
        change(
          caller,
          orderId,
          ({ before, nowMs }) => {
            requireStep(caller, before, "pay");
            return { ...paymentOf(before, body, nowMs), status: STEPS.pay.to };
          },
          "pay",
        ),
    ),
    ...ENDINGS.map(({ step, summary, by }) =>
      defineRoute(
        {
          method: "post",
          path: `/:orderId/${step}`,
          operation: `${step}Order`,
          summary,
          description: by,
          params,
          body: z.strictObject({}),
          answer: order.entity,
          conflict: `it is not ${STEPS[step].from.join(" or ")}`,
        },
        ({ caller, params: { orderId } }) =>
          change(
            caller,
            orderId,
            ({ before }) => {
              requireStep(caller, before, step);
              return { status: STEPS[step].to };
            },
            step,
          ),
      ),
    ),
  ],
});
