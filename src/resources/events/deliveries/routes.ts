import { shortListQuery } from "../../../http/page.ts";
import { toRecordedDelivery } from "../../../ingest/recorded-delivery.ts";
import { withoutChannelIds } from "../../../lib/secrets/channel-id.ts";
import { redactBytes, redactTexts } from "../../../lib/secrets/redact.ts";
import { appParams, appScopeOf } from "../../apps/app-scope.ts";
import { listOf, newestOf } from "../../kit/answer.ts";
import { slicePage } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../explained-item.ts";
import { preview } from "./preview.ts";
import { getDelivery, listDeliveries, listNewestDeliveries } from "./queries.ts";
import { readingSchema, readingsOf } from "./readings.ts";
import {
  deliverySchema,
  listQuerySchema,
  newestDeliveriesQuery,
  renderDelivery,
  renderWholeDelivery,
  wholeDeliverySchema,
} from "./schema.ts";

export const deliveries: Resource = {
  tag: "Deliveries",
  params: { ...appParams, deliveryId: pathId("del", "delivery") },
  routes: (deps) => [
    preview(deps),
    defineRoute({
      at: "GET /deliveries",
      operation: "listNewestDeliveries",
      summary: "List the newest deliveries of all apps",
      description:
        "Lists sampled deliveries of all apps, newest first. A filter by `eventId` searches the newest 2,000.",
      query: newestDeliveriesQuery,
      answer: newestOf(deliverySchema),
      async handle({ caller, query }) {
        const { items, ...page } = await listNewestDeliveries(deps, caller.organizationId, query);
        return { items: items.map((record) => renderDelivery(record, deps.traceUrl)), ...page };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/deliveries",
      operation: "listDeliveries",
      summary: "List the newest deliveries",
      description:
        "Lists sampled deliveries, including rejected ones. Inlet stores at most one delivery per second and channel, and fewer under load. It keeps the newest 100 per channel, up to 1 MiB in total, for 24 hours. A filter by `eventId` searches the newest 2,000.",
      permission: "deliveries.read",
      query: listQuerySchema,
      answer: listOf(deliverySchema),
      async handle({ caller, params, query: { limit, offset, order, ...filters } }) {
        const scope = appScopeOf(caller, params);
        const { items, total } = await listDeliveries(deps, scope, filters, { limit, offset, order });
        return { items: items.map((record) => renderDelivery(record, deps.traceUrl)), total };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/deliveries/:deliveryId",
      operation: "getDelivery",
      summary: "Get a delivery with its body",
      description:
        "Returns the delivery as received. Secrets are replaced by `***`: the channel's secrets, the credentials that its verification reads, and channel addresses.",
      permission: "deliveries.read",
      answer: wholeDeliverySchema,
      async handle({ caller, params }) {
        const found = await getDelivery(deps, appScopeOf(caller, params), params.deliveryId);
        const { record, body } = found;
        await recordUse(deps, caller, "read", "delivery", [record.id]);
        const channel = await deps.findCompiledChannel(record.channelNumber);
        const delivery = toRecordedDelivery(found);
        const explained = channel && record.hasBody ? await deps.explain(channel, delivery) : [];
        const redact = channel?.sender.createRedactor(delivery) ?? withoutChannelIds;
        const explanation = explained.slice(0, MAX_EXPLAINED_ITEMS).map(renderExplainedItem);
        const shown = { ...found, body: body && redactBytes(body, redact) };
        return redactTexts(renderWholeDelivery(shown, explanation, deps.traceUrl), redact);
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/deliveries/:deliveryId/readings",
      operation: "listReadings",
      summary: "List how far subscriptions have processed a delivery's events",
      description:
        "Returns the current state of the delivery's first 20 events in each subscription, ordered by event, then subscription.",
      permission: "deliveries.read",
      query: shortListQuery,
      answer: listOf(readingSchema),
      async handle({ caller, params, query }) {
        const scope = appScopeOf(caller, params);
        const { record } = await getDelivery(deps, scope, params.deliveryId);
        return slicePage(await readingsOf(deps, scope, record.outcome.events), query);
      },
    }),
  ],
};
