import { z } from "zod";
import { listOf } from "../../kit/answer.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { endOrder, payOrder } from "./life.ts";
import { createOrder, deleteOrder, getOrder, listOrders, updateOrder } from "./queries.ts";
import { orderInput, orderPatch, orderSchema, ordersQuery, paymentInput } from "./schema.ts";

const order = standardRoutes({ name: "order", prefix: "ord", entity: orderSchema });
const params = { orderId: pathId("ord", "order") } as const;
const SELLER = "Done by the store's organization.";

/** Orders of artifacts: seen by the buyer's and the store's organization. */
export const storeOrders: Resource<RowDeps> = {
  path: "/stores/orders",
  tag: "Store",
  routes: (deps) => [
    order.create(
      {
        body: orderInput,
        description:
          "It is pending until the store's organization has been paid. The subtotal is the plan's price; plan and store may change later, the order does not.",
        missing: "the artifact or its plan is not there",
        conflict: "the artifact is not published",
      },
      ({ caller, body }) => createOrder(deps, caller, body),
    ),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listOrders",
        summary: "List the orders",
        description: "What the caller's organization has bought, and what was bought in its stores.",
        query: ordersQuery,
        answer: listOf(orderSchema),
      },
      ({ caller, query }) => listOrders(deps, caller, query),
    ),
    order.get(({ caller, id }) => getOrder(deps, caller, id)),
    order.update(
      { body: orderPatch, description: SELLER, conflict: "it is not pending" },
      ({ caller, id, patch }) => updateOrder(deps, caller, id, patch),
    ),
    order.remove(
      { description: "Done by the buyer's organization.", conflict: "it was paid" },
      ({ caller, id }) => deleteOrder(deps, caller, id),
    ),
    defineRoute(
      {
        method: "post",
        path: "/:orderId/pay",
        operation: "payOrder",
        summary: "Tell that an order was paid",
        description: `${SELLER} The order gets a license key, and by the interval of its plan an end.`,
        params,
        body: paymentInput,
        answer: orderSchema,
        conflict: "it is not pending, or its total is another",
      },
      ({ caller, params: { orderId }, body }) => payOrder(deps, caller, orderId, body),
    ),
    ending(deps, "refund", {
      summary: "Tell that an order was paid back",
      description: SELLER,
      from: "paid",
    }),
    ending(deps, "expire", {
      ...{ summary: "End an order whose time is over", description: SELLER, from: "pending or paid" },
    }),
    ending(deps, "cancel", {
      summary: "Cancel an order",
      description: "Done by the buyer's or the store's organization.",
      from: "pending or paid",
    }),
  ],
};

function ending(
  deps: RowDeps,
  step: "refund" | "expire" | "cancel",
  { summary, description, from }: Readonly<Record<"summary" | "description" | "from", string>>,
): Route {
  return defineRoute(
    {
      ...{ method: "post", path: `/:orderId/${step}`, operation: `${step}Order`, summary, description },
      ...{ params, body: z.strictObject({}), answer: orderSchema, conflict: `it is not ${from}` },
    },
    ({ caller, params: { orderId } }) => endOrder(deps, caller, orderId, step),
  );
}
