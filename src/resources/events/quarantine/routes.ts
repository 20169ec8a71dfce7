import { z } from "zod";
import type { QuarantineFilter } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import { conflict, invalidParameters, notFound } from "../../../http/errors.ts";
import { deleted } from "../../../http/fields.ts";
import { formatCursor, parseCursor } from "../../../http/page.ts";
import { withoutChannelIds } from "../../../lib/secrets/channel-id.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { findChannelNumbers, getChannel } from "../../apps/app-channel.ts";
import { type AppScope, appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { findPlaces } from "../../apps/organization-channels.ts";
import { listOf, newestOf } from "../../kit/answer.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { pathText } from "../../kit/params.ts";
import { recordUse } from "../../kit/record-use.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { deleteCopiesOfItem } from "../delivery-copies.ts";
import { renderExplainedItem } from "../explained-item.ts";
import { groups } from "./groups.ts";
import { explainKept, preview } from "./preview.ts";
import { redriveAll, redriveItem } from "./redrive.ts";
import {
  type Filters,
  itemSchema,
  listQuerySchema,
  newestItemsQuery,
  recordSchema,
  redriveManySchema,
  redriveResultSchema,
  redriveSchema,
  renderItem,
  renderRecord,
} from "./schema.ts";

const toMicroseconds = (ms: number | undefined): number | undefined =>
  ms === undefined ? undefined : ms * 1_000;

/** Routes for quarantine, which stores items that could not become events, so that users can inspect them and process them again. */
export const quarantine: Resource = {
  tag: "Quarantine",
  params: { ...appParams, itemId: pathText(/^[A-Za-z0-9_]{1,64}$/, "quarantined item", "qr_1") },
  routes(deps) {
    const { db, quarantine } = deps;

    async function filterOf(scope: AppScope, filters: Filters): Promise<QuarantineFilter> {
      const { channelId, reason, from: fromMs, to: toMs } = filters;
      await requireApp(db, scope);
      const channelNumbers =
        channelId === undefined
          ? await findChannelNumbers(db, scope)
          : [(await getChannel(db, deps.keyring, scope, channelId)).number];
      return {
        organizationId: scope.organizationId,
        channelNumbers,
        ...omitUndefined({ reason, fromMs, toMs }),
      };
    }

    async function getItem(scope: AppScope, id: string): Promise<QuarantinedItem> {
      const found = await quarantine.find(scope.organizationId, id);
      const channels = found && (await findChannelNumbers(db, scope, { number: found.record.channelNumber }));
      if (!found || channels?.length !== 1) throw notFound("quarantined item");
      return found;
    }

    return [
      preview(deps, filterOf),
      groups(deps, filterOf),
      defineRoute({
        at: "GET /quarantine",
        operation: "listNewestQuarantine",
        summary: "List the newest quarantined items of all apps",
        description: "Lists the items by their first arrival, newest first.",
        permission: "apps.read",
        query: newestItemsQuery,
        answer: newestOf(recordSchema),
        async handle({ caller: { organizationId }, query }) {
          const { appId, channel, limit, cursor, ...filters } = query;
          const channelNumbers = await findPlaces(deps, organizationId, { appId, channel });
          const { records, last, total } = await quarantine.listNewest(organizationId, {
            channelNumbers,
            reason: filters.reason,
            from: toMicroseconds(filters.from),
            to: toMicroseconds(filters.to),
            limit,
            after: parseCursor(cursor),
          });
          return { items: records.map(renderRecord), total, next: last && formatCursor(last) };
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/quarantine",
        operation: "listQuarantine",
        summary: "List quarantined items",
        query: listQuerySchema,
        answer: listOf(recordSchema),
        async handle({ caller, params, query: { limit, offset, ...filters } }) {
          const filter = await filterOf(appScopeOf(caller, params), filters);
          const { records, total } = await quarantine.list(filter, { limit, offset });
          return { items: records.map(renderRecord), total };
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/quarantine/redrive",
        operation: "redriveMany",
        summary: "Redrive many quarantined items",
        description:
          "Runs the first `limit` matching items, in order of arrival, through the channel's current definitions. Returns one result per item. If Redis becomes unavailable, the current item and all later ones have the result `unavailable`.",
        body: redriveManySchema,
        answer: z.array(redriveResultSchema),
        async handle({ caller, params, body: { limit, ...filters }, c }) {
          const filter = await filterOf(appScopeOf(caller, params), filters);
          const { records } = await quarantine.list(filter, { limit, offset: 0 });
          const ids = records.map(({ id }) => id);
          await recordUse(deps, caller, "redrive", "quarantinedItem", ids);
          return redriveAll(deps, filter.organizationId, ids, c.req.raw.signal);
        },
      }),
      defineRoute({
        at: "GET /apps/:appId/quarantine/:itemId",
        operation: "getQuarantinedItem",
        summary: "Get a quarantined item with its delivery",
        description:
          "Returns the delivery as received. Secrets are replaced by `***`: the channel's secrets, the credentials that its verification reads, and channel addresses. A redrive uses the original delivery.",
        answer: itemSchema,
        async handle({ caller, params }) {
          const found = await getItem(appScopeOf(caller, params), params.itemId);
          await recordUse(deps, caller, "read", "quarantinedItem", [found.record.id]);
          const channel = await deps.findCompiledChannel(found.record.channelNumber);
          const explained = channel ? await explainKept(deps, channel, found) : [];
          const redact = channel?.sender.createRedactor(found.delivery) ?? withoutChannelIds;
          return redactTexts(renderItem(found, explained.map(renderExplainedItem), redact), redact);
        },
      }),
      defineRoute({
        at: "DELETE /apps/:appId/quarantine/:itemId",
        operation: "deleteQuarantinedItem",
        summary: "Delete a quarantined item",
        description: "Also deletes the stored deliveries that contain the item.",
        answer: deleted,
        async handle({ caller, params }) {
          const { record } = await getItem(appScopeOf(caller, params), params.itemId);
          await recordUse(deps, caller, "delete", "quarantinedItem", [record.id]);
          await deleteCopiesOfItem(deps.deliveryRecords, record, record.id);
          if (!(await quarantine.delete(caller.organizationId, record.id)))
            throw notFound("quarantined item");
          return { id: record.id };
        },
      }),
      defineRoute({
        at: "POST /apps/:appId/quarantine/:itemId/redrive",
        operation: "redriveItem",
        summary: "Redrive a quarantined item",
        description:
          "Runs the item through the channel's current definitions. With `asNewId`, an item with the reason `id_conflict` is published under a new id.",
        body: redriveSchema,
        answer: redriveResultSchema,
        conflict:
          "the item cannot be redriven: its signature is invalid, or its channel was deleted or rejects it",
        async handle({ caller, params, body: { asNewId }, c }) {
          const found = await getItem(appScopeOf(caller, params), params.itemId);
          if (asNewId && found.record.reason !== "id_conflict") {
            throw invalidParameters([
              { path: "asNewId", message: "is only allowed for an item with the reason id_conflict" },
            ]);
          }
          await recordUse(deps, caller, "redrive", "quarantinedItem", [found.record.id]);
          const result = await redriveItem(deps, found, { asNewId, signal: c.req.raw.signal });
          if (result.status === "refused") throw conflict(result.message ?? "The item cannot be redriven.");
          return result;
        },
      }),
    ];
  },
};
