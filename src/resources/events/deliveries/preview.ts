import { z } from "zod";
import { definitionsSchema } from "../../../event/definition.ts";
import type { WholeDeliveryRecord } from "../../../event/delivery-record.ts";
import type { ExplainedItem } from "../../../event/explained.ts";
import { id } from "../../../http/fields.ts";
import { toRecordedDelivery } from "../../../ingest/recorded-delivery.ts";
import { redactTexts } from "../../../lib/secrets/redact.ts";
import { getChannel, getCompiledChannel } from "../../apps/app-channel.ts";
import { appScopeOf } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { recordUse } from "../../kit/record-use.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { explainedItemSchema, MAX_EXPLAINED_ITEMS, renderExplainedItem } from "../explained-item.ts";
import { filters } from "./schema.ts";

/** Maximum number of items per preview. A preview ends after the delivery that reaches this or `MAX_ANSWER_CHARACTERS`. */
const MAX_PREVIEWED_ITEMS = 5_000;
const MAX_ANSWER_CHARACTERS = 8 * 1024 * 1024;

const previewSchema = z.strictObject({
  channelId: filters.channel.unwrap().describe("Id or uid of the channel."),
  status: filters.status,
  events: definitionsSchema
    .optional()
    .describe("Event definitions to try instead of the channel's own. The channel is not changed."),
  limit: z.int().min(1).max(100).default(100).describe("Number of the newest deliveries to preview."),
});

const countSchema = z.array(
  z.object({
    name: z.string(),
    before: z.int().meta({ description: "Original count, from when the deliveries were received." }),
    after: z.int().meta({ description: "Count with the previewed definitions." }),
  }),
);

const previewResultSchema = z
  .object({
    examined: z.int().meta({
      description: `Number of previewed deliveries. Deliveries without a stored body are skipped, and the preview stops after ${MAX_PREVIEWED_ITEMS} items.`,
    }),
    events: countSchema.meta({ description: "Number of events by type." }),
    failures: countSchema.meta({ description: "Number of quarantined or rejected items by reason." }),
    items: z.array(
      z.object({
        id: id("del"),
        isChanged: z.boolean().meta({
          description: "Whether the event types or failure reasons differ from the original result.",
        }),
        explanation: z.array(explainedItemSchema),
      }),
    ),
  })
  .meta({
    id: "DeliveriesPreview",
    description: "The result that the newest deliveries would have. A preview publishes no events.",
  });

export const preview = (deps: Deps): Route =>
  defineRoute({
    at: "POST /apps/:appId/deliveries/preview",
    operation: "previewDeliveries",
    summary: "Preview definitions on the newest deliveries",
    description:
      "Runs a channel's newest deliveries through its current event definitions, or through those in `events`, and compares the result with the original one. The newest delivery comes first. Publishes no events. Secrets are replaced by `***`.",
    permission: "deliveries.read",
    body: previewSchema,
    answer: previewResultSchema,
    async handle({ caller, params, body: { channelId, status, events, limit } }) {
      const { db, keyring, deliveryRecords, explain } = deps;
      const scope = appScopeOf(caller, params);
      const { number } = await getChannel(db, keyring, scope, channelId);
      const channel = await getCompiledChannel(deps, number, events);
      const listed = await deliveryRecords.list(scope.organizationId, [number]);
      const newest = listed
        .filter((one) => status === undefined || one.status === status)
        .reverse()
        .slice(0, limit);
      const ids = newest.map(({ id }) => id);
      await recordUse(deps, caller, "read", "delivery", ids);
      const [types, reasons] = [createCounts(), createCounts()];
      const items = [];
      let [previewed, characters] = [0, 0];
      for (const id of ids) {
        if (previewed >= MAX_PREVIEWED_ITEMS || characters >= MAX_ANSWER_CHARACTERS) break;
        const found = await deliveryRecords.find(scope.organizationId, id);
        if (!found?.record.hasBody) continue;
        const delivery = toRecordedDelivery(found);
        const explained = await explain(channel, delivery);
        const [before, after] = [madeBefore(found), madeAfter(explained)];
        types.add(before.types, after.types);
        reasons.add(before.reasons, after.reasons);
        const isChanged =
          before.types.join() !== after.types.join() || before.reasons.join() !== after.reasons.join();
        const first = explained.slice(0, MAX_EXPLAINED_ITEMS).map(renderExplainedItem);
        const explanation = redactTexts(first, channel.sender.createRedactor(delivery));
        previewed += explained.length;
        characters += JSON.stringify(explanation).length;
        items.push({ id, isChanged, explanation });
      }
      return { examined: items.length, events: types.counted(), failures: reasons.counted(), items };
    },
  });

/** Outcome of a delivery: its event types and failure reasons. Both lists are sorted, so that two outcomes can be compared. */
interface Made {
  readonly types: readonly string[];
  readonly reasons: readonly string[];
}

function madeBefore({ record: { outcome }, items }: WholeDeliveryRecord): Made {
  const kept = outcome.quarantine.map(({ reason }) => reason);
  // Failure reasons of a rejected delivery are stored in its items, because a rejected delivery has no quarantine entries.
  const refused = items.flatMap(({ failures }) => failures.map(({ reason }) => reason));
  return {
    types: outcome.events.map(({ type }) => type).sort(),
    reasons: (kept.length > 0 || outcome.events.length > 0 ? kept : refused).sort(),
  };
}

/**
 * Returns the outcome with the new definitions. A failure reason counts once per item, and an id already used for other
 * data counts as `id_conflict`.
 */
function madeAfter(explained: readonly ExplainedItem[]): Made {
  const made = explained.flatMap(({ events }) => events);
  const conflicts = made.filter(({ status }) => status === "conflict").map(() => "id_conflict");
  return {
    types: made
      .filter(({ status }) => status !== "conflict")
      .map(({ type }) => type)
      .sort(),
    reasons: [
      ...explained.flatMap(({ failures }) => [...new Set(failures.map(({ reason }) => reason))]),
      ...conflicts,
    ].sort(),
  };
}

function createCounts() {
  const counts = new Map<string, { before: number; after: number }>();
  const of = (name: string) => {
    const count = counts.get(name) ?? { before: 0, after: 0 };
    counts.set(name, count);
    return count;
  };
  return {
    add(before: readonly string[], after: readonly string[]): void {
      for (const name of before) of(name).before++;
      for (const name of after) of(name).after++;
    },
    counted: () => [...counts].map(([name, count]) => ({ name, ...count })),
  };
}
