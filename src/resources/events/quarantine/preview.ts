import type { QuarantineFilter } from "../../../bus/quarantine/quarantine.ts";
import type { QuarantinedItem } from "../../../bus/quarantine/quarantine-record.ts";
import type { ExplainedItem } from "../../../event/explained.ts";
import { invalidParameters, notFound } from "../../../http/errors.ts";
import { tryDefinitions } from "../../../ingest/check-definitions.ts";
import type { CompiledChannel } from "../../../ingest/compiled-channel.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { type AppScope, appParams, appScopeOf } from "../../apps/app-scope.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { renderExplainedItem } from "../explained-item.ts";
import { type QuarantineDeps, recordUse } from "./redrive.ts";
import { type Filters, previewResultSchema, previewSchema } from "./schema.ts";

/** Shows what processing the quarantined item again would produce with the event definitions in `channel`. */
export function explainKept(
  { explain }: Pick<QuarantineDeps, "explain">,
  channel: CompiledChannel,
  { record, delivery }: QuarantinedItem,
): Promise<readonly ExplainedItem[]> {
  const { id, item, definitions } = record;
  return explain(channel, delivery, { id, item, definitions, asNewId: false });
}

/** Applies event definitions to quarantined items without publishing events, so that users can test the definitions. */
export const preview = (
  deps: QuarantineDeps,
  filterOf: (scope: AppScope, filters: Filters) => Promise<QuarantineFilter>,
): Route =>
  defineRoute(
    {
      method: "post",
      path: "/preview",
      operation: "previewQuarantine",
      summary: "Preview a redrive",
      description:
        "Counts the matching items. Explains the result that a redrive of the first `limit` of them, in order of arrival, would have with the channel's current definitions or with those in `events`. Publishes no events and leaves all items in quarantine.",
      params: appParams,
      body: previewSchema,
      answer: previewResultSchema,
    },
    async ({ caller, params, body: { limit, events, ...filters } }) => {
      const filter = await filterOf(appScopeOf(caller, params), filters);
      const { records, total } = await deps.quarantine.list(filter, { limit, offset: 0 });
      const channelNumber = records[0]?.channelNumber ?? filter.channelNumbers?.[0];
      const stored = channelNumber === undefined ? undefined : await deps.findCompiledChannel(channelNumber);
      if (!stored) throw notFound("channel");
      const tried = events && (await tryDefinitions(deps.schemas, stored, events, deps.stopping));
      if (tried?.ok === false) throw invalidParameters(tried.error);
      const channel = tried?.value ?? stored;
      await recordUse(
        deps,
        caller,
        "read",
        records.map(({ id }) => id),
      );
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
  );
