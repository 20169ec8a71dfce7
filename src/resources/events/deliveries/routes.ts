import { recordAccess } from "../../../data/accounts/audit.ts";
import { shortListQuery } from "../../../http/page.ts";
import { withoutChannelIds } from "../../../lib/secrets/channel-id.ts";
import { redactBytes, redactTexts } from "../../../lib/secrets/redact.ts";
import { appParams, appScopeOf } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { deliveryOf } from "../delivery-copies.ts";
import { MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../explained-item.ts";
import { type PreviewDeps, preview } from "./preview.ts";
import { getDelivery, listDeliveries } from "./queries.ts";
import { type ReadingsDeps, readingSchema, readingsOf } from "./readings.ts";
import {
  deliverySchema,
  listQuerySchema,
  renderDelivery,
  renderWholeDelivery,
  wholeDeliverySchema,
} from "./schema.ts";

const params = { ...appParams, deliveryId: pathId("del", "delivery") };

export const deliveries: Resource<PreviewDeps & ReadingsDeps> = {
  path: "/apps/:appId/deliveries",
  tag: "Deliveries",
  routes: (deps) => [
    preview(deps),
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listDeliveries",
        summary: "List the newest deliveries",
        description:
          "Lists sampled deliveries, including rejected ones. Inlet stores at most one delivery per second and channel, and fewer under load. It keeps the newest 100 per channel, up to 1 MiB in total, for 24 hours. A filter by `eventId` searches the newest 2,000.",
        permission: "deliveries.read",
        params: appParams,
        query: listQuerySchema,
        answer: listOf(deliverySchema),
      },
      async ({ caller, params, query: { limit, offset, order, ...filters } }) => {
        const scope = appScopeOf(caller, params);
        const { items, total } = await listDeliveries(deps, scope, filters, { limit, offset, order });
        return { items: items.map(renderDelivery), total };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:deliveryId",
        operation: "getDelivery",
        summary: "Get a delivery with its body",
        description:
          "Returns the delivery as received. Secrets are replaced by `***`: the channel's secrets, the credentials that its verification reads, and channel addresses.",
        permission: "deliveries.read",
        params,
        answer: wholeDeliverySchema,
      },
      async ({ caller, params }) => {
        const found = await getDelivery(deps, appScopeOf(caller, params), params.deliveryId);
        const { record, body } = found;
        await recordAccess(
          deps.db,
          caller,
          [{ action: "read", entity: "delivery", id: record.id }],
          deps.clock(),
        );
        const channel = await deps.findCompiledChannel(record.channelNumber);
        const delivery = deliveryOf(found);
        const explained = channel && record.hasBody ? await deps.explain(channel, delivery) : [];
        const redact = channel?.sender.createRedactor(delivery) ?? withoutChannelIds;
        const explanation = explained.slice(0, MAX_EXPLAINED_ITEMS).map(renderExplainedItem);
        const shown = { ...found, body: body && redactBytes(body, redact) };
        return redactTexts(renderWholeDelivery(shown, explanation), redact);
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:deliveryId/readings",
        operation: "listReadings",
        summary: "List how far subscriptions have processed a delivery's events",
        description:
          "Returns the current state of the delivery's first 20 events in each subscription, ordered by event, then subscription.",
        permission: "deliveries.read",
        params,
        query: shortListQuery,
        answer: listOf(readingSchema),
      },
      async ({ caller, params, query: { limit, offset } }) => {
        const scope = appScopeOf(caller, params);
        const { record } = await getDelivery(deps, scope, params.deliveryId);
        const readings = await readingsOf(deps, scope, record.outcome.events);
        const items = readings.slice(offset, limit === undefined ? undefined : offset + limit);
        return { items, total: readings.length };
      },
    ),
  ],
};
