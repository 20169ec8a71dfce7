import type { QuarantineFilter } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import type { ExplainedItem } from "../../../event/explained.ts";
import type { CompiledChannel } from "../../../ingest/compile-channel.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { getCompiledChannel } from "../../apps/app-channel.ts";
import { type AppScope, appScopeOf } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { renderExplainedItem } from "../explained-item.ts";
import { type Filters, previewResultSchema, previewSchema } from "./schema.ts";

/** Shows what processing the quarantined item again would produce with the event definitions in `channel`. */
export function explainKept(
  { explain }: Deps,
  channel: CompiledChannel,
  { record, delivery }: QuarantinedItem,
): Promise<readonly ExplainedItem[]> {
  const { id, item, definitions } = record;
  return explain(channel, delivery, { id, item, definitions, asNewId: false });
}

/** Applies event definitions to quarantined items without publishing events, so that users can test the definitions. */
export const preview = (
  deps: Deps,
  filterOf: (scope: AppScope, filters: Filters) => Promise<QuarantineFilter>,
): Route =>
  defineRoute({
    at: "POST /apps/:appId/quarantine/preview",
    operation: "previewQuarantine",
    summary: "Preview a redrive",
    description:
      "Counts the matching items. Explains the result that a redrive of the first `limit` of them, in order of arrival, would have with the channel's current definitions or with those in `events`. Publishes no events and leaves all items in quarantine.",
    body: previewSchema,
    answer: previewResultSchema,
    async handle({ caller, params, body: { limit, events, ...filters } }) {
      const filter = await filterOf(appScopeOf(caller, params), filters);
      const { records, total } = await deps.quarantine.list(filter, { limit, offset: 0 });
      const channelNumber = records[0]?.channelNumber ?? filter.channelNumbers?.[0];
      const channel = await getCompiledChannel(deps, channelNumber, events);
      const ids = records.map(({ id }) => id);
      await recordUse(deps, caller, "read", "quarantinedItem", ids);
      const items = [];
      for (const { id, reason } of records) {
        const found = await deps.quarantine.find(filter.organizationId, id);
        // The item was deleted or processed again after it was listed.
        if (!found) continue;
        const explained = reason === "signature_invalid" ? [] : await explainKept(deps, channel, found);
        const isReleased =
          explained.length > 0 &&
          explained.every(({ failures, events }) => {
            return failures.length === 0 && events.every(({ status }) => status !== "conflict");
          });
        const explanation = redactTexts(
          explained.map(renderExplainedItem),
          channel.sender.createRedactor(found.delivery),
        );
        items.push({ id, reason, isReleased, explanation });
      }
      return { matched: total, released: items.filter(({ isReleased }) => isReleased).length, items };
    },
  });
